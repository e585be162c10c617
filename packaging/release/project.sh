# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by the scripts of a release: the only place that knows the address of the repository, the registry of its images, who
# packages rlock, and the keys. Each variable may be set in the environment; the defaults are those of the clone or fork that runs the script.

# The address of the repository: that of the CI system, or that of the remote `origin`, or the directory.
if [ -z "${RLOCK_HOME-}" ]; then
  if [ -n "${GITHUB_REPOSITORY-}" ]; then
    RLOCK_HOME=${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY
  elif [ -n "${CI_PROJECT_URL-}" ]; then
    RLOCK_HOME=$CI_PROJECT_URL
  else
    origin=$(git remote get-url origin 2>/dev/null) || origin=$PWD
    case $origin in
      https://* | http://*) RLOCK_HOME=${origin%.git} ;;
      git@*:*) origin=${origin#git@} RLOCK_HOME=https://${origin%%:*}/${origin#*:} RLOCK_HOME=${RLOCK_HOME%.git} ;;
      ssh://git@*) origin=${origin#ssh://git@} RLOCK_HOME=https://${origin%.git} ;;
      *) RLOCK_HOME=file://$(cd "$origin" 2>/dev/null && pwd || echo "$PWD") ;;
    esac
  fi
fi
# The name of the image, without a tag: GitHub's or GitLab's registry of the repository.
if [ -z "${RLOCK_REGISTRY-}" ]; then
  case $RLOCK_HOME in
    https://github.com/*) RLOCK_REGISTRY=$(echo "ghcr.io/${RLOCK_HOME#https://github.com/}" | tr '[:upper:]' '[:lower:]') ;;
    *) RLOCK_REGISTRY=${CI_REGISTRY_IMAGE:-localhost:5000/rlock} ;;
  esac
fi
RLOCK_PACKAGER=${RLOCK_PACKAGER:-the rlock authors <rlock@users.noreply.github.com>}
RLOCK_KEY=${RLOCK_KEY:-${HOME-}/.config/rlock-release/key.pem}  # Ed25519, in PEM: signs the checksums
RLOCK_GPG_KEY=${RLOCK_GPG_KEY:-}                             # a name that gpg knows: signs the apt repository
export RLOCK_HOME RLOCK_REGISTRY RLOCK_PACKAGER RLOCK_KEY RLOCK_GPG_KEY
