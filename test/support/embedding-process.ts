import { fork } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import type { EmbedOptions } from '../../src/engine/ports.ts';

/** What became of the texts that a process was told to embed. */
export interface EmbedReply {
  readonly outcome: string;
  readonly retryAfterMs: number | null;
}

export interface EmbeddingProcess {
  /** A call each. @returns their outcomes in order: `ok` or the code of the error */
  embed(texts: readonly string[], purpose?: EmbedOptions['purpose']): Promise<EmbedReply[]>;
}

/** A process of its own that embeds as a worker does, with what all processes of a data folder share. */
export async function startEmbeddingProcess(settings: Readonly<Record<string, string>>): Promise<EmbeddingProcess> {
  const child = fork(new URL('./embedding-process-main.ts', import.meta.url), {
    env: { PATH: process.env.PATH, ...settings },
    execArgv: [],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message'); // It is ready.
  return {
    async embed(texts, purpose = 'document') {
      const reply = once(child, 'message') as Promise<[EmbedReply[]]>;
      child.send({ texts, purpose });
      return (await reply)[0];
    },
  };
}
