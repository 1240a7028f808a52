#compdef irc-translate

autoload -U is-at-least

_irc-translate() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'-o+[Output file, compressed if it ends in .gz; - for standard output]:OUT:_files' \
'--output=[Output file, compressed if it ends in .gz; - for standard output]:OUT:_files' \
'--arch=[Device of a plan\: ANY, CUDA, CUDA_80, ROCM_942, … \[default\: CUDA_80\] \[applies to\: --emit-plan\]]:NAME:_default' \
'--processors=[Number of processors that a plan may use \[default\: all of the device\] \[applies to\: --emit-plan\]]:N:_default' \
'--planner=[Planner of a plan\: irc optimises, ark reproduces ARK'\''s own planner \[applies to\: --emit-plan\]]:NAME:((irc\:"The optimising planner of irc"
ark\:"A reproduction of ARK'\''s planner, which schedules one op after another"))' \
'--config-rules=[JSON file that fixes configs of ops in a plan; see docs/config-rules.md \[applies to\: --emit-plan\]]:FILE:_files' \
'--frontend=[Frontend file of a Gemini schedule \[applies to\: Gemini schedules\]]:F:_files' \
'--dialect=[Dialect of the schedule of a model \[applies to\: --emit-gemini of ARK models, Common IR and ONNX files, MLIR\]]:DIALECT:((a\:"That of the tool chain for one core\: with addresses, tiles and the order of DRAM accesses"
b\:"That of SET and Gemini\: several cores, without addresses"
c\:"The same with interleaved DRAM and addresses"))' \
'--target=[The NPU\: npu\:mesh=WxH, more keys in docs/npu-models.md \[applies to\: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR\]]:NPU:_default' \
'--batch=[Images that are scheduled at once \[default\: those of the model'\''s inputs\] \[applies to\: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR\]]:N:_default' \
'--objective=[What the schedule minimises \[default\: edp\] \[applies to\: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR\]]:WHAT:((edp\:"Energy times delay"
latency\:"Delay"
energy\:"Energy"))' \
'--set-tree=[Resource allocation tree of the schedule, in SET'\''s text form, instead of a search \[applies to\: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR\]]:T.txt:_files' \
'--format=[Format of the file if its content is ambiguous\: onnx, common-ir-text, …]:FORMAT:_default' \
'*--library-path=[Additional folder to search for imported libraries, after the model'\''s own folder \[applies to\: Common IR and ONNX files; --emit-common-ir, --emit-onnx\]]:DIR:_files' \
'--allow-fetch=[Download imported libraries into this folder, unless they are already there \[applies to\: Common IR and ONNX files; --emit-common-ir, --emit-onnx\]]:CACHE:_files' \
'*--shape=[Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable \[applies to\: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files\]]:NAME=SHAPE:_default' \
'--cache=[Room of caches of keys and values, in tokens\: a number or a name; new ones go in place \[applies to\: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files\]]:TOKENS:_default' \
'--functions=[How to compile calls of the model'\''s functions \[applies to\: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files\]]:HOW:((inline\:"Inline each call, so that it fuses with the surrounding ops"
outline\:"Share one function between calls where its structure does not depend on argument values"))' \
'--encoding=[Encoding \[default\: from the suffix\: .json, .pbtxt or .textproto, else binary\] \[applies to\: --emit-common-ir, --emit-onnx\]]:ENCODING:((binary\:"Protobuf'\''s wire format"
text\:"Protobuf'\''s text format"
json\:"Protobuf'\''s JSON mapping"))' \
'--diagnostics=[Format of diagnostics\: text, or one JSON object per line]:FORMAT:((text\:"Text with the source lines that they refer to"
json\:"One JSON object per line"))' \
'--color=[When to use colours; auto\: on a terminal, unless NO_COLOR is set]:WHEN:((auto\:"On a terminal, unless \`NO_COLOR\` is set"
always\:"Always"
never\:"Never"))' \
'--progress=[How to report progress; auto\: a progress bar on a terminal, for long operations]:HOW:((auto\:"A progress bar on a terminal, otherwise nothing"
none\:"No progress report"
plain\:"One line per step"))' \
'--import-ark[Read an ARK model file]' \
'--import-common-ir[Read a Common IR graph or library]' \
'--import-onnx[Read an ONNX model]' \
'--import-gemini[Read a Gemini schedule]' \
'--import-npu[Read an NPU program\: a listing, a trace, or the binary form]' \
'--emit-ark[Write an ARK model file]' \
'--emit-plan[Write an ARK execution plan]' \
'--emit-npu[Write an NPU program\: a listing, or the binary form if OUT ends in .npu]' \
'--emit-gemini[Write a Gemini schedule]' \
'--emit-mlf[Write a Model Library Format archive for this machine, as irc compile -o x.tar does]' \
'--emit-common-ir[Write a Common IR graph or library]' \
'--emit-onnx[Write an ONNX model]' \
'--strict[Treat unknown keys as errors \[applies to\: ARK models, Gemini schedules\]]' \
'--explain-schedule[Explain each segment of the schedule\: what was chosen, its bound, the runner-up \[applies to\: --emit-gemini, --emit-npu of ARK models, Common IR and ONNX files, MLIR\]]' \
'--implicit-std[Resolve undeclared operators in the standard library \[applies to\: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files\]]' \
'--ignore-control-inputs[Ignore control inputs, so that they do not order nodes \[applies to\: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files\]]' \
'--assume-stated-shapes[Take sizes computed at run time to be those that the model states; checked at run time \[applies to\: --emit-ark, --emit-plan, --emit-mlf of Common IR and ONNX files\]]' \
'--bundle[Copy imported libraries into the module, so that it has no imports \[applies to\: Common IR and ONNX files; --emit-common-ir, --emit-onnx\]]' \
'--common-ir-fields[Write features that only Common IR has to additional fields of the ONNX model \[applies to\: --emit-onnx\]]' \
'--inline[Write external data into the ONNX model \[applies to\: --emit-onnx\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
'::input -- Input file; - for standard input:_default' \
&& ret=0
}

(( $+functions[_irc-translate_commands] )) ||
_irc-translate_commands() {
    local commands; commands=()
    _describe -t commands 'irc-translate commands' commands "$@"
}

if [ "$funcstack[1]" = "_irc-translate" ]; then
    _irc-translate "$@"
else
    compdef _irc-translate irc-translate
fi
