import { fork } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import type { EmbedOptions } from '../../src/engine/ports.ts';
import { openEmbedding, type EmbedReply } from './open-embedding.ts';

/**
 * A process that embeds texts as a worker does. It uses the files that all processes of a data folder share, such as
 * the cache.
 */
export interface EmbeddingProcess {
  /**
   * Embeds each text with a call of its own.
   * @returns the outcomes in order: `ok` or the code of the error
   */
  embed(texts: readonly string[], purpose?: EmbedOptions['purpose']): Promise<EmbedReply[]>;
}

/** Two processes with the same settings: this one, and a child. */
export async function startEmbeddingPair(
  settings: Readonly<Record<string, string>>,
): Promise<readonly [here: EmbeddingProcess, child: EmbeddingProcess]> {
  const child = fork(new URL('./embedding-process-main.ts', import.meta.url), {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...settings },
    execArgv: [],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message'); // It is ready.
  const here = openEmbedding(settings);
  onTestFinished(here.close);
  return [
    here,
    {
      async embed(texts, purpose = 'document') {
        const reply = once(child, 'message') as Promise<[EmbedReply[]]>;
        child.send({ texts, purpose });
        return (await reply)[0];
      },
    },
  ];
}
