import type { Config } from '../config.ts';
import type { LanguageModel } from '../ports.ts';
import { createOpenAiLanguageModel } from './openai-language-model.ts';

/** The model that `OM_LLM_MODEL` names; null where none is set, and everything works without. */
export function createLanguageModel(config: Config): LanguageModel | null {
  return config.OM_LLM_MODEL === undefined ? null : createOpenAiLanguageModel(config, config.OM_LLM_MODEL);
}
