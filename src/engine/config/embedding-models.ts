import { hasModels, MODEL_SETTINGS, type NamedModel } from '../named-model.ts';
import { SECTORS, type Sector } from '../types.ts';
import type { Settings } from './settings.ts';

/** A server of `OM_EMBED_FALLBACK`. */
export interface Fallback {
  /** Base URL of the server, as for `OM_OPENAI_BASE_URL`. */
  readonly baseUrl: string;
  /**
   * Key of this server, at the same position in `OM_EMBED_FALLBACK_KEY`; undefined if that is empty or missing, so that
   * none is sent.
   */
  readonly apiKey: string | undefined;
}

/** The values of `OM_EMBEDDINGS` with which no provider is called for vectors. */
export const EMBEDDED_HERE: ReadonlySet<Settings['OM_EMBEDDINGS']> = new Set(['synthetic', 'local', 'none']);

/** Returns the name of the setting that holds a sector's model, such as `OM_EMBED_MODEL_EPISODIC`. */
export const sectorSetting = (sector: Sector) => `OM_EMBED_MODEL_${sector.toUpperCase() as Uppercase<Sector>}` as const;

/**
 * Returns the model of each sector in the order of SECTORS; a sector whose setting is unset has the provider's usual
 * model. Null with `OM_EMBED_MODE=simple`, or if the provider has only one model.
 */
export function sectorModelsOf(settings: Settings): NamedModel[] | null {
  const { OM_EMBED_MODE, OM_EMBEDDINGS, OM_VEC_DIM } = settings;
  if (OM_EMBED_MODE === 'simple' || !hasModels(OM_EMBEDDINGS)) return null;
  return SECTORS.map((sector) => {
    const [model = settings[MODEL_SETTINGS[OM_EMBEDDINGS]], dimensions] =
      settings[sectorSetting(sector)]?.split('@') ?? [];
    return { model, dimensions: Number(dimensions ?? OM_VEC_DIM) };
  });
}

/** Splits a list at its commas and trims each entry. An empty entry stays, as ''; '' gives one empty entry. */
export const commaSeparated = (text: string) => text.split(',').map((part) => part.trim());

/**
 * Returns the servers of `OM_EMBED_FALLBACK` in order, each with the key at its position in `OM_EMBED_FALLBACK_KEY`;
 * empty if it is not set.
 */
export function fallbacksOf({ OM_EMBED_FALLBACK, OM_EMBED_FALLBACK_KEY = '' }: Settings): Fallback[] {
  const keys = commaSeparated(OM_EMBED_FALLBACK_KEY);
  const urls = OM_EMBED_FALLBACK === '' ? [] : commaSeparated(OM_EMBED_FALLBACK);
  return urls.map((baseUrl, place) => ({ baseUrl, apiKey: keys[place] || undefined }));
}
