import type { EmbedOptions } from '../../src/engine/ports.ts';
import { openEmbedding } from './open-embedding.ts';

/** The child process of `startEmbeddingPair`. */
const { embed } = openEmbedding(process.env);

process.on('message', ({ texts, purpose }: { texts: string[]; purpose: EmbedOptions['purpose'] }) => {
  void embed(texts, purpose).then((replies) => process.send?.(replies));
});
process.send?.('ready');
