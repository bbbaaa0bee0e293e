import { readConfig } from '../../src/engine/config.ts';
import { isEngineError } from '../../src/engine/errors.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openEmbeddingSources } from '../../src/engine/parts/embedding-sources.ts';
import { type EmbedOptions, systemClock } from '../../src/engine/ports.ts';

/** What became of a text that was to be embedded: `ok` or the code of the error. */
export interface EmbedReply {
  readonly outcome: string;
  readonly retryAfterMs: number | null;
}

/** Embeds as the worker of a process does, with what all processes of a data folder share. */
export function openEmbedding(settings: NodeJS.ProcessEnv) {
  const { gatherer, close } = openEmbeddingSources({
    config: readConfig(settings),
    clock: systemClock,
    metrics: createMetrics(),
    onCall: () => {},
  });
  const embedOne = async (text: string, purpose: EmbedOptions['purpose']): Promise<EmbedReply> => {
    try {
      await gatherer!.embed(text, purpose);
      return { outcome: 'ok', retryAfterMs: null };
    } catch (error) {
      if (isEngineError(error)) return { outcome: error.code, retryAfterMs: error.retryAfterMs ?? null };
      throw error;
    }
  };
  return {
    /** A call each. @returns their outcomes in order */
    embed: (texts: readonly string[], purpose: EmbedOptions['purpose'] = 'document') =>
      Promise.all(texts.map((text) => embedOne(text, purpose))),
    close,
  };
}
