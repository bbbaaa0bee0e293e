import { readConfig } from '../../src/engine/config.ts';
import { isEngineError } from '../../src/engine/errors.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openEmbeddingSources } from '../../src/engine/parts/embedding-sources.ts';
import { type EmbedOptions, systemClock } from '../../src/engine/ports.ts';

/** Outcome of embedding a text: `ok` or the code of the error. */
export interface EmbedReply {
  readonly outcome: string;
  readonly retryAfterMs: number | null;
}

/** Opens an embedder as a worker process does, with the files that all processes of a data folder share. */
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
    /**
     * Embeds each text with a call of its own.
     * @returns the outcomes in order
     */
    embed: (texts: readonly string[], purpose: EmbedOptions['purpose'] = 'document') =>
      Promise.all(texts.map((text) => embedOne(text, purpose))),
    close,
  };
}
