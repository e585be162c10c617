#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unpack_image.py IMAGE ARCHITECTURE ROOT: unpacks the layers that the OCI archive IMAGE has for ARCHITECTURE (as amd64) to ROOT, and
prints the entry point. Each file of the image is checked against its digest."""
import hashlib
import io
import json
import sys
import tarfile


class Image:
    def __init__(self, archive):
        self.archive = archive

    def blob(self, descriptor):
        algorithm, digest = descriptor["digest"].split(":")
        content = self.archive.extractfile(f"./blobs/{algorithm}/{digest}").read()
        if hashlib.new(algorithm, content).hexdigest() != digest:
            sys.exit(f"{digest}: another digest")
        return content

    def manifests(self, index):
        """The manifests of an index, which may name further indexes."""
        for descriptor in index["manifests"]:
            content = json.loads(self.blob(descriptor))
            if "manifests" in content:
                yield from self.manifests(content)
            else:
                yield content

    def of(self, architecture):
        """The configuration and the manifest for that architecture."""
        for manifest in self.manifests(json.load(self.archive.extractfile("./index.json"))):
            configuration = json.loads(self.blob(manifest["config"]))
            if (configuration["os"], configuration["architecture"]) == ("linux", architecture):
                return configuration, manifest
        sys.exit(f"there is no image for {architecture}")


def main():
    file, architecture, root = sys.argv[1:]
    with tarfile.open(file) as archive:
        image = Image(archive)
        configuration, manifest = image.of(architecture)
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(image.blob(layer))) as files:
                files.extractall(root)
    print(*configuration["config"]["Entrypoint"])


if __name__ == "__main__":
    main()
