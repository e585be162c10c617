# SPDX-License-Identifier: Apache-2.0
# fish completion of rlock and rflock: rlock completion fish | source

function __rlock_next
    set -l words (commandline -opc)
    set -l called $words[2..-1]
    set -l front 1
    if string match -q '*rflock' -- $words[1]
        set called flock $called
        set front 0
    end
    set -l rlock (string replace -r 'rflock$' rlock -- $words[1])
    set -l answer ($rlock completion --next -- $called (commandline -ct) 2>/dev/null)
    switch "$answer[1]"
        case files
            __fish_complete_path (commandline -ct)
        case 'command *'
            __fish_complete_subcommand --fcs-skip=(math (string replace 'command ' '' -- $answer[1]) + $front)
        case '*'
            string join \n -- $answer[2..-1]
    end
end

complete -c rlock -f -a '(__rlock_next)'
complete -c rflock -f -a '(__rlock_next)'
