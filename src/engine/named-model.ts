/**
 * Models of the provider that the settings name. They are apart from the settings because threads that read no settings
 * need them.
 */

/** The setting that names the model, by provider. `local` is left out: its model is a folder, so there is only one. */
export const MODEL_SETTINGS = {
  openai: 'OM_OPENAI_MODEL',
  gemini: 'OM_GEMINI_MODEL',
  ollama: 'OM_OLLAMA_MODEL',
  bedrock: 'OM_BEDROCK_MODEL',
} as const;

/** A model of the provider that `OM_EMBEDDINGS` names, with the dimensions of its vectors. */
export interface NamedModel {
  /** Name of the model, as its provider calls it. */
  readonly model: string;
  readonly dimensions: number;
}

/** The settings that `withModel` reads; others may be present. */
interface ModelSettings {
  readonly OM_EMBEDDINGS: string;
  readonly OM_VEC_DIM: number;
}

/**
 * Returns a copy of the settings with another model and `OM_VEC_DIM`. With a provider whose model no setting names
 * (`synthetic`, `local`), only `OM_VEC_DIM` changes.
 */
export function withModel<S extends ModelSettings>(settings: S, { model, dimensions }: NamedModel): S {
  const setting = MODEL_SETTINGS[settings.OM_EMBEDDINGS as keyof typeof MODEL_SETTINGS] as string | undefined;
  return { ...settings, OM_VEC_DIM: dimensions, ...(setting === undefined ? {} : { [setting]: model }) };
}

/** Whether a provider (a value of `OM_EMBEDDINGS`) has several models to choose from. */
export function hasModels(provider: string): provider is keyof typeof MODEL_SETTINGS {
  return provider in MODEL_SETTINGS;
}
