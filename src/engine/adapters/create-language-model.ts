import type { Config } from '../config.ts';
import type { LanguageModel } from '../ports.ts';
import { createOpenAiLanguageModel } from './openai-language-model.ts';

/**
 * Creates a language model of the configured server. Returns null if no model is given and `OM_LLM_MODEL` is not set.
 * @param model name of the model; by default the one that `OM_LLM_MODEL` names
 */
export function createLanguageModel(config: Config, model = config.OM_LLM_MODEL): LanguageModel | null {
  return model === undefined ? null : createOpenAiLanguageModel(config, model);
}
