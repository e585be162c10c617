// SPDX-License-Identifier: Apache-2.0
#include "judge/job_form.h"

#include "support/process.h"

#include <unistd.h>

namespace rlock::judge {
namespace {

Words joined(Words first, const Words& second)
{
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A root that may neither signal nor see the processes of another user: the group of its own keeps it out of those that
// hidepid makes an exception for.
const Words below_hidepid{
    "unshare",
    "-m",
    "sh",
    "-c",
    "mount -t proc -o hidepid=2,gid=65533 proc /proc && exec setpriv --bounding-set=-kill,-sys_ptrace \"$@\"",
    "sh"};

}  // namespace

const char* name_of(JobForm form)
{
  switch (form) {
    case JobForm::direct: return "direct";
    case JobForm::timeout: return "timeout";
    case JobForm::setsid_wait: return "setsid-wait";
    case JobForm::setsid_background: return "setsid-background";
    case JobForm::frozen: return "frozen";
    case JobForm::hidden: return "hidden";
  }
  return "";
}

bool is_wrapped(JobForm form) { return leaves_group(form) || form == JobForm::hidden; }

bool leaves_group(JobForm form)
{
  return form == JobForm::timeout || form == JobForm::setsid_wait || form == JobForm::setsid_background;
}

bool outlasts_kill(JobForm form) { return form == JobForm::frozen || form == JobForm::hidden; }

// The shells end with a further command, so that they do not become the last one.
Words job_words(JobForm form, const Words& job)
{
  switch (form) {
    case JobForm::timeout: return joined({"sh", "-c", "timeout 60 \"$0\" \"$@\"; exit $?"}, job);
    case JobForm::setsid_wait: return joined({"setsid", "-w"}, job);
    case JobForm::setsid_background: return joined({"sh", "-c", "setsid \"$0\" \"$@\" & wait $!; exit $?"}, job);
    case JobForm::hidden: return joined({"sh", "-c", "\"$0\" \"$@\"; exit $?"}, job);
    default: return job;
  }
}

Words rlock_words(JobForm form, const Words& rlock)
{
  return form == JobForm::hidden ? joined(below_hidepid, rlock) : rlock;
}

std::string why_not_hidden()
{
  if (::geteuid() != 0) {
    return "needs root";
  }
  test::Process probe(joined(below_hidepid, {"sh", "-c",
                                             "setpriv --reuid 65534 --regid 65534 --clear-groups sleep 1 & sleep 0.3; "
                                             "! [ -e /proc/$! ] && ! kill $! 2>/dev/null"}));
  return probe.wait().code == 0 ? "" : "hidepid has no effect here: " + probe.err();
}

}  // namespace rlock::judge
