_irc() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="irc"
                ;;
            irc,bench)
                cmd="irc__subcmd__bench"
                ;;
            irc,check)
                cmd="irc__subcmd__check"
                ;;
            irc,compile)
                cmd="irc__subcmd__compile"
                ;;
            irc,help)
                cmd="irc__subcmd__help"
                ;;
            irc,run)
                cmd="irc__subcmd__run"
                ;;
            irc,simulate)
                cmd="irc__subcmd__simulate"
                ;;
            irc,tune)
                cmd="irc__subcmd__tune"
                ;;
            irc__subcmd__help,bench)
                cmd="irc__subcmd__help__subcmd__bench"
                ;;
            irc__subcmd__help,check)
                cmd="irc__subcmd__help__subcmd__check"
                ;;
            irc__subcmd__help,compile)
                cmd="irc__subcmd__help__subcmd__compile"
                ;;
            irc__subcmd__help,help)
                cmd="irc__subcmd__help__subcmd__help"
                ;;
            irc__subcmd__help,run)
                cmd="irc__subcmd__help__subcmd__run"
                ;;
            irc__subcmd__help,simulate)
                cmd="irc__subcmd__help__subcmd__simulate"
                ;;
            irc__subcmd__help,tune)
                cmd="irc__subcmd__help__subcmd__tune"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        irc)
            opts="-h -V --diagnostics --color --progress --help --version compile run check bench tune simulate help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --diagnostics)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --progress)
                    COMPREPLY=($(compgen -W "auto none plain" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__bench)
            opts="-h -V --inputs --json --threads --seed --time --iterations --in-place --profile --tuning --peak-gflops --peak-bandwidth --backend --arch --target-cpu --ark-accumulate --format --library-path --allow-fetch --shape --cache --implicit-std --functions --ignore-control-inputs --assume-stated-shapes --diagnostics --color --progress --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --inputs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --iterations)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tuning)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --peak-gflops)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --peak-bandwidth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --backend)
                    COMPREPLY=($(compgen -W "llvm cranelift cuda emulate" -- "${cur}"))
                    return 0
                    ;;
                --arch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --target-cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --library-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-fetch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --functions)
                    COMPREPLY=($(compgen -W "inline outline" -- "${cur}"))
                    return 0
                    ;;
                --diagnostics)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --progress)
                    COMPREPLY=($(compgen -W "auto none plain" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__check)
            opts="-h -V --model --against --strict --json --compat --cost --host-fallback --target --batch --objective --set-tree --explain-schedule --format --library-path --allow-fetch --shape --cache --implicit-std --functions --ignore-control-inputs --assume-stated-shapes --diagnostics --color --progress --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --model)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --against)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --batch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --objective)
                    COMPREPLY=($(compgen -W "edp latency energy" -- "${cur}"))
                    return 0
                    ;;
                --set-tree)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --library-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-fetch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --functions)
                    COMPREPLY=($(compgen -W "inline outline" -- "${cur}"))
                    return 0
                    ;;
                --diagnostics)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --progress)
                    COMPREPLY=($(compgen -W "auto none plain" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__compile)
            opts="-o -h -V --output --backend --emit --stage --frontend --model --inputs --arch --timestamps --no-persistent --processors --planner --config-rules --mlf-version --codegen --check-reproducible --with-test-vectors --model-name --report --host-fallback --dialect --target --batch --objective --set-tree --explain-schedule --format --library-path --allow-fetch --shape --cache --implicit-std --functions --ignore-control-inputs --assume-stated-shapes --target-cpu --ark-accumulate --calibrate --calibrate-method --quantize --quantize-results --results --tuning --explain-fusion --diagnostics --color --progress --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --backend)
                    COMPREPLY=($(compgen -W "llvm cranelift cuda" -- "${cur}"))
                    return 0
                    ;;
                --emit)
                    COMPREPLY=($(compgen -W "so o ll s c mlir json tar asm ptx" -- "${cur}"))
                    return 0
                    ;;
                --stage)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --frontend)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --model)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --inputs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --arch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --processors)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --planner)
                    COMPREPLY=($(compgen -W "irc ark" -- "${cur}"))
                    return 0
                    ;;
                --config-rules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mlf-version)
                    COMPREPLY=($(compgen -W "5 7" -- "${cur}"))
                    return 0
                    ;;
                --codegen)
                    COMPREPLY=($(compgen -W "o c" -- "${cur}"))
                    return 0
                    ;;
                --model-name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --report)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dialect)
                    COMPREPLY=($(compgen -W "a b c" -- "${cur}"))
                    return 0
                    ;;
                --target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --batch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --objective)
                    COMPREPLY=($(compgen -W "edp latency energy" -- "${cur}"))
                    return 0
                    ;;
                --set-tree)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --library-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-fetch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --functions)
                    COMPREPLY=($(compgen -W "inline outline" -- "${cur}"))
                    return 0
                    ;;
                --target-cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --calibrate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --calibrate-method)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --quantize)
                    COMPREPLY=($(compgen -W "per-channel per-tensor" -- "${cur}"))
                    return 0
                    ;;
                --quantize-results)
                    COMPREPLY=($(compgen -W "read all" -- "${cur}"))
                    return 0
                    ;;
                --results)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tuning)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --explain-fusion)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --diagnostics)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --progress)
                    COMPREPLY=($(compgen -W "auto none plain" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__help)
            opts="compile run check bench tune simulate help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__help__subcmd__bench)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__help__subcmd__check)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__help__subcmd__compile)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__help__subcmd__simulate)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__help__subcmd__tune)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__run)
            opts="-h -V --model --inputs --outputs --expected --tolerance --seed --data-set --self-test --threads --trace --race-check --max-instructions --transport --backend --arch --format --library-path --allow-fetch --shape --cache --implicit-std --functions --ignore-control-inputs --assume-stated-shapes --target-cpu --ark-accumulate --calibrate --calibrate-method --quantize --quantize-results --results --tuning --explain-fusion --diagnostics --color --progress --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --model)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --inputs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --outputs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --expected)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tolerance)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --data-set)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-instructions)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --transport)
                    COMPREPLY=($(compgen -W "inprocess mpi" -- "${cur}"))
                    return 0
                    ;;
                --backend)
                    COMPREPLY=($(compgen -W "llvm cranelift reference cuda emulate" -- "${cur}"))
                    return 0
                    ;;
                --arch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --library-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-fetch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --functions)
                    COMPREPLY=($(compgen -W "inline outline" -- "${cur}"))
                    return 0
                    ;;
                --target-cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --calibrate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --calibrate-method)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --quantize)
                    COMPREPLY=($(compgen -W "per-channel per-tensor" -- "${cur}"))
                    return 0
                    ;;
                --quantize-results)
                    COMPREPLY=($(compgen -W "read all" -- "${cur}"))
                    return 0
                    ;;
                --results)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tuning)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --explain-fusion)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --diagnostics)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --progress)
                    COMPREPLY=($(compgen -W "auto none plain" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__simulate)
            opts="-h -V --frontend --model --shape --host-fallback --target --program --trace --html --link-rate --dram-rate --outputs --inputs --weights --seed --json --calibrate --calibrate-method --quantize --quantize-results --diagnostics --color --progress --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --frontend)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --model)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --program)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --html)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --link-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dram-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --outputs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --inputs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --weights)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --calibrate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --calibrate-method)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --quantize)
                    COMPREPLY=($(compgen -W "per-channel per-tensor" -- "${cur}"))
                    return 0
                    ;;
                --quantize-results)
                    COMPREPLY=($(compgen -W "read all" -- "${cur}"))
                    return 0
                    ;;
                --diagnostics)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --progress)
                    COMPREPLY=($(compgen -W "auto none plain" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        irc__subcmd__tune)
            opts="-o -h -V --output --time --target-cpu --ark-accumulate --format --library-path --allow-fetch --shape --cache --implicit-std --functions --ignore-control-inputs --assume-stated-shapes --diagnostics --color --progress --help --version"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --target-cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --library-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow-fetch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --functions)
                    COMPREPLY=($(compgen -W "inline outline" -- "${cur}"))
                    return 0
                    ;;
                --diagnostics)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                --color)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --progress)
                    COMPREPLY=($(compgen -W "auto none plain" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _irc -o nosort -o bashdefault -o default irc
else
    complete -F _irc -o bashdefault -o default irc
fi
