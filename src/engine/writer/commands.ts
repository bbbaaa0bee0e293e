import { addMemories } from '../ingest/accept.ts';
import { deleteExpired, deleteMatching, deleteMemory } from '../ingest/erase.ts';
import { patchMemory } from '../ingest/patch.ts';
import { applyRecalls, reinforceMemory } from '../ingest/reinforce.ts';
import { contradictMemories, linkMemories, supersedeMemory, unlinkMemories } from '../ingest/relate.ts';
import { forgetHandouts, returnHandout, takeHandout, type HandoutOptions } from '../store/dispatch.ts';
import { appendEmbedLog, type EmbedLogEntry } from '../store/embeddings.ts';
import { cancelJob, discardJob, retryJob } from '../store/jobs.ts';
import { ensureStoreId } from '../store/store-info.ts';
import type { WriteContext } from './write-context.ts';

/** Everything that is written on behalf of a client. A command is synchronous and all or nothing. */
export const WRITE_COMMANDS = {
  addMemories,
  patchMemory,
  deleteMemory,
  deleteMatching,
  deleteExpired,
  reinforceMemory,
  applyRecalls,
  linkMemories,
  unlinkMemories,
  supersedeMemory,
  contradictMemories,
  takeHandout: ({ store, now }: WriteContext, options: Omit<HandoutOptions, 'now'>) =>
    takeHandout(store, { ...options, now }),
  returnHandout: ({ store }: WriteContext, { seqs }: { readonly seqs: readonly number[] }) =>
    returnHandout(store, seqs),
  forgetHandouts: ({ store }: WriteContext, _: Record<never, never>) => forgetHandouts(store),
  retryJob: ({ store, now }: WriteContext, { id }: { readonly id: string }) => retryJob(store, id, now),
  cancelJob: ({ store, now }: WriteContext, { id }: { readonly id: string }) => cancelJob(store, id, now),
  discardJob: ({ store }: WriteContext, { id }: { readonly id: string }) => discardJob(store, id),
  appendEmbedLog: ({ store }: WriteContext, entry: EmbedLogEntry) => appendEmbedLog(store, entry),
  /** Makes sure that the file exists, is migrated and has its name. */
  open: ({ store }: WriteContext, _: Record<never, never>) => ensureStoreId(store),
} as const;

export type WriteCommands = typeof WRITE_COMMANDS;
export type WriteCommandName = keyof WriteCommands;
export type WriteInput<N extends WriteCommandName> = Parameters<WriteCommands[N]>[1];
export type WriteOutput<N extends WriteCommandName> = ReturnType<WriteCommands[N]>;
