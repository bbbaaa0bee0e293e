import { readConfig } from '../../src/engine/config.ts';
import { isEngineError } from '../../src/engine/errors.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { openParts } from '../../src/engine/parts/engine-parts.ts';
import { systemClock, type EmbedOptions } from '../../src/engine/ports.ts';
import type { EmbedReply } from './embedding-process.ts';

/** The other side of `startEmbeddingProcess`. */
const { gatherer } = openParts({
  config: readConfig(process.env),
  clock: systemClock,
  metrics: createMetrics(),
  role: 'worker',
  onCall: () => {},
});

process.on('message', ({ texts, purpose }: { texts: string[]; purpose: EmbedOptions['purpose'] }) => {
  void Promise.all(texts.map((text) => embed(text, purpose))).then((replies) => process.send?.(replies));
});
process.send?.('ready');

async function embed(text: string, purpose: EmbedOptions['purpose']): Promise<EmbedReply> {
  try {
    await gatherer!.embed(text, purpose);
    return { outcome: 'ok', retryAfterMs: null };
  } catch (error) {
    if (isEngineError(error)) return { outcome: error.code, retryAfterMs: error.retryAfterMs ?? null };
    throw error;
  }
}
