#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sbom.py VERSION DIRECTORY TREE...: writes DIRECTORY/rlock-VERSION.spdx.json, the bill of materials of the files there (SPDX 2.3).

TREE: the build directory of an architecture. What was linked is read from the maps of the linker, which headers were compiled
in from the log of ninja, and their packages and versions from dpkg of this machine."""
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

LICENCES = {  # of what can become part of the programs, by Debian's source package
    "ca-certificates": "MPL-2.0", "cli11": "BSD-3-Clause", "cross-toolchain-base": "LGPL-2.1-or-later", "curl": "curl", "glibc": "LGPL-2.1-or-later",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1", "gcc-12-cross": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "hiredis": "BSD-3-Clause", "linux": "GPL-2.0-only WITH Linux-syscall-note", "lua5.1": "MIT", "mariadb": "LGPL-2.0-or-later",
    "mongo-c-driver": "Apache-2.0 AND Zlib", "nghttp2": "MIT", "nlohmann-json3": "MIT", "openssl": "Apache-2.0", "postgresql-15": "PostgreSQL",
    "protozero": "BSD-2-Clause AND Apache-2.0", "tomlplusplus": "MIT",
}
ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
PACKAGE_NAMES = {"x86_64": ("amd64.deb", "x86_64.rpm"), "aarch64": ("arm64.deb", "aarch64.rpm")}


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def debian_packages(files, architecture):
    """The packages that contain the files, with source package, version and architecture. A header can be in the packages of two
    architectures."""
    paths = {os.path.realpath(file) for file in files}
    paths |= {path.removeprefix("/usr") for path in paths}  # Debian 12 lists the files of libc6 below /lib
    found = subprocess.run(["dpkg", "-S", *sorted(paths)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    names = {name for line in found.splitlines() for name in line.rsplit(": ", 1)[0].split(", ")}
    fields = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n"
    rows = {tuple(line.split("\t")) for name in names for line in output("dpkg-query", "-W", "-f", fields, name).splitlines()}
    return {row for row in rows if row[2] in (DEBIAN_NAMES[architecture], "all")}


def linked(map_file, architecture):
    """The packages of the archives and of the shared libraries in a map of the linker."""
    text = map_file.read_text()
    inside = text[:text.index("Memory Configuration")]
    archives = set(re.findall(r"^(/\S+\.a)\(", inside, re.MULTILINE))
    loaded = set(re.findall(r"^LOAD (/\S+)", text, re.MULTILINE))
    objects = {path for path in loaded if path.endswith(".o")}
    shared = {path for path in loaded if re.search(r"\.so\.[.0-9]+$", path) and "ld-linux" not in path}
    return debian_packages(archives | objects, architecture), debian_packages(shared, architecture)


def compiled_in(tree, architecture):
    headers = {line.strip() for line in output("ninja", "-C", str(tree), "-t", "deps").splitlines() if line.startswith("    /usr/")}
    return debian_packages(headers, architecture)


class Bill:
    def __init__(self, version, directory, home):
        self.version, self.directory, self.home = version, directory, home
        self.packages, self.relationships = {}, []

    def _add(self, of, **fields):
        identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", of)
        self.packages[identifier] = {"SPDXID": identifier, "filesAnalyzed": False, "copyrightText": "NOASSERTION",
                                     "licenseConcluded": "NOASSERTION", **fields}
        return identifier

    def artefact(self, file):
        address = f"{self.home}/releases/download/v{self.version}/{file.name}"
        identifier = self._add(
            file.name, name="rlock", versionInfo=self.version, packageFileName=file.name, licenseDeclared="Apache-2.0",
            downloadLocation=address, supplier="Organization: the rlock authors",
            checksums=[{"algorithm": "SHA256", "checksumValue": hashlib.sha256(file.read_bytes()).hexdigest()}])
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", identifier)
        return identifier

    def debian_package(self, package):
        name, version, architecture, source, source_version = package
        return self._add(
            f"{name}-{architecture}", name=name, versionInfo=version, supplier="Organization: Debian",
            downloadLocation="NOASSERTION", licenseDeclared=LICENCES.get(source, "NOASSERTION"),
            sourceInfo=f"built from the Debian source package {source} {source_version}",
            externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                           "referenceLocator": f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={architecture}"}])

    def relate(self, one, how, other):
        self.relationships.append({"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other})

    def relate_all(self, one, how, packages):
        for package in sorted(packages):
            self.relate(one, how, self.debian_package(package))

    def text(self):
        content = {"packages": [self.packages[key] for key in sorted(self.packages)],
                   "relationships": sorted(self.relationships, key=lambda each: tuple(each.values()))}
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
        head = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"rlock-{self.version}",
                "documentNamespace": f"{self.home}/spdx/rlock-{self.version}-{digest}",
                "creationInfo": {"created": created, "creators": ["Tool: packaging/release/sbom.py of rlock"]}}
        return json.dumps({**head, **content}, indent=1) + "\n"


def add_architecture(bill, tree, files):
    """Returns the identifier of the static program."""
    architecture = ELF_MACHINES[int.from_bytes((tree / "standalone/rlock").read_bytes()[18:20], "little")]
    headers = compiled_in(tree, architecture)
    programs = {"standalone": (f"linux-{architecture}",), "rlock": PACKAGE_NAMES[architecture]}
    for target, endings in programs.items():
        archives, shared = linked(tree / f"{target}.map", architecture)
        for file in (file for file in files if file.name.endswith(endings)):
            identifier = bill.artefact(file)
            bill.relate_all(identifier, "STATIC_LINK", archives)
            bill.relate_all(identifier, "DYNAMIC_LINK", shared)
            bill.relate_all(identifier, "GENERATED_FROM", headers - archives - shared)
            bill.relate(identifier, "GENERATED_FROM", f"SPDXRef-rlock-{bill.version}.tar.gz")
            if target == "standalone":
                static = identifier
    return static


def main():
    version, directory = sys.argv[1], Path(sys.argv[2])
    bill = Bill(version, directory, os.environ["RLOCK_HOME"])
    files = sorted(directory.iterdir())
    bill.artefact(directory / f"rlock-{version}.tar.gz")
    image = bill.artefact(directory / f"rlock-{version}-oci.tar")
    for tree in sys.argv[3:]:
        bill.relate(image, "CONTAINS", add_architecture(bill, Path(tree), files))
    bill.relate_all(image, "CONTAINS", debian_packages(["/usr/share/doc/ca-certificates/copyright"], "x86_64"))
    (directory / f"rlock-{version}.spdx.json").write_text(bill.text())


if __name__ == "__main__":
    main()
