# SPDX-License-Identifier: Apache-2.0
# nix profile install . (or nix run .) builds rlock from this tree.
{
  description = "run a command under a distributed lock on Redis, PostgreSQL, MySQL, MariaDB, MongoDB, etcd, ZooKeeper or S3";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      for_each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in {
      packages = for_each (pkgs: {
        default = pkgs.stdenv.mkDerivation {
          pname = "rlock";
          version = "0.1.0";
          src = self;
          nativeBuildInputs = with pkgs; [ cmake ninja pkg-config ];
          buildInputs = with pkgs; [
            cli11 curl hiredis libmysqlclient libpq lua5_1 mongoc nghttp2 nlohmann_json openssl protozero tomlplusplus
          ];
          cmakeFlags = [ "-DRLOCK_TESTS=OFF" "-DRLOCK_ZSH_COMPLETIONS=share/zsh/site-functions" ];
          # rlock loads these libraries at the first use of their servers.
          postFixup = ''
            patchelf --add-rpath ${pkgs.lib.makeLibraryPath (with pkgs; [ curl libmysqlclient libpq mongoc nghttp2 openssl ])} $out/bin/rlock
          '';
          meta = {
            description = "Run a command under a distributed lock";
            license = pkgs.lib.licenses.asl20;
            mainProgram = "rlock";
            platforms = systems;
          };
        };
      });
    };
}
