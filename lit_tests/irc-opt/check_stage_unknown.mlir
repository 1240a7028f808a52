// check-stage without a stage says which there are.
// RUN: %irc-opt --verify-diagnostics --check-stage %s

// expected-error@below {{'builtin.module' op no stage '' in pipeline 'host-cpu'; stages: import, tensor}}
module {}
