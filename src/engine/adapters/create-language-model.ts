import type { Config } from '../config.ts';
import type { LanguageModel } from '../ports.ts';
import { createOpenAiLanguageModel } from './openai-language-model.ts';

/** Creates the language model that `OM_LLM_MODEL` names; null if it is not set: a language model is optional. */
export function createLanguageModel(config: Config): LanguageModel | null {
  return config.OM_LLM_MODEL === undefined ? null : createOpenAiLanguageModel(config, config.OM_LLM_MODEL);
}
