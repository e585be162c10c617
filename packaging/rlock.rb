# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

# A Homebrew formula for Linux: brew install --build-from-source --HEAD ./packaging/rlock.rb
# Replace example.org by the address under which the source is published.
class Rlock < Formula
  desc "Run a command under a distributed lock on Redis"
  homepage "https://example.org/rlock"
  license "Apache-2.0"
  head "https://example.org/rlock.git", branch: "main"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "pkgconf" => :build
  depends_on "hiredis"
  depends_on :linux
  depends_on "openssl@3"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DRLOCK_TESTS=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/rlock --version") if build.stable?
    assert_match "cannot reach", shell_output("#{bin}/rlock run -S unix:///nowhere -k k -- true 2>&1", 69)
  end
end
