import { Counter, Histogram, type Registry } from 'prom-client';

/** Makes the metrics of the language model. */
export function createLanguageModelMetrics(registers: Registry[]) {
  return {
    languageModelCalls: new Counter({
      name: 'cairn_language_model_calls_total',
      help: 'Calls of the language model, by outcome (ok, or the error code).',
      labelNames: ['outcome'],
      registers,
    }),
    languageModelCallDurations: new Histogram({
      name: 'cairn_language_model_call_duration_seconds',
      help: 'Time of a call of the language model, whatever its outcome.',
      buckets: [0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    languageModelTokens: new Counter({
      name: 'cairn_language_model_tokens_total',
      help:
        'Tokens of answered calls of the language model, by direction (input, output); estimated if the server does ' +
        'not report them.',
      labelNames: ['direction'],
      registers,
    }),
  };
}
