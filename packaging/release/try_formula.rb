# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

# try_formula.rb FORMULA SOURCE PREFIX: runs `install` and `test` of the formula on the source tarball with the few methods of
# Homebrew that it calls, because brew is in no package of Debian. Checks the checksum that the formula names.
require "digest"
require "tmpdir"

formula_file, source, prefix = ARGV.map { |path| File.expand_path(path) }

# What the formula says is kept in `said`.
class Formula
  class << self
    attr_reader :said, :test_block

    %i[desc homepage url sha256 license head depends_on].each do |name|
      define_method(name) { |*values| ((@said ||= {})[name] ||= []) << values.first }
    end

    def test(&block)
      @test_block = block
    end
  end

  def initialize(prefix, version)
    @prefix = prefix
    @version = version
  end
  attr_reader :prefix, :version

  def bin
    "#{prefix}/bin"
  end

  def std_cmake_args
    ["-DCMAKE_INSTALL_PREFIX=#{prefix}", "-DCMAKE_BUILD_TYPE=Release"]
  end

  def system(*command)
    Kernel.system(*command) || abort("failed: #{command.join(" ")}")
  end

  def shell_output(command, code = 0)
    text = `#{command}`
    abort("#{command} ended with #{$?.exitstatus}") unless $?.exitstatus == code
    text
  end

  def assert_match(wanted, text)
    abort("no #{wanted} in: #{text}") unless text.include?(wanted)
  end
end

load formula_file
said = Rlock.said
abort("another checksum") unless said[:sha256] == [Digest::SHA256.file(source).hexdigest]
version = said[:url].first[%r{/rlock-([0-9.]+)\.tar\.gz\z}, 1] || abort("no version in #{said[:url]}")
formula = Rlock.new(prefix, version)
Dir.mktmpdir do |directory|
  Kernel.system("tar", "-xzf", source, "-C", directory, "--strip-components=1") || abort("tar")
  Dir.chdir(directory) { formula.install }
end
formula.instance_eval(&Rlock.test_block)
puts "rlock #{version} is in #{prefix}"
