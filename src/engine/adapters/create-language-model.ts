import type { Config } from '../config.ts';
import type { LanguageModel } from '../ports.ts';
import { createOpenAiLanguageModel } from './openai-language-model.ts';

/**
 * Creates the language model that `OM_LLM_MODEL` names, or another one of the same server; null if it is not set, as a
 * language model is optional.
 */
export function createLanguageModel(config: Config, model = config.OM_LLM_MODEL): LanguageModel | null {
  return model === undefined ? null : createOpenAiLanguageModel(config, model);
}
