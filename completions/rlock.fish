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
            # The command of the job is a command line of its own: complete its program, or its arguments.
            set -l first (math (string replace 'command ' '' -- $answer[1]) + $front + 1)
            set -l line
            for word in $words[$first..-1]
                set line $line (string escape -- $word)
            end
            set -l token (commandline -ct)
            complete -C (string join ' ' -- $line "$token")
        case '*'
            string join \n -- $answer[2..-1]
    end
end

complete -c rlock -f -a '(__rlock_next)'
complete -c rflock -f -a '(__rlock_next)'
