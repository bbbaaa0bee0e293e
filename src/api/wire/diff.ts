/** Translates differences between two times between the engine's names and the field names of the API. */
import { charactersOf, type DiffEntry, type DiffOptions, type MemoryDiff } from '../../engine/index.ts';
import type { DiffQuery, DiffReply } from '../schemas/diff.ts';
import { storedMemoryItem } from './memories.ts';

/**
 * Translates the query string of `GET /diff`.
 * @param now end of the window if the query names none, Unix ms
 */
export function toDiffOptions(query: DiffQuery, now: number): DiffOptions {
  const { from, to = now, axis, user_id, session_id, tag, topic, faded_below, limit, format, token_budget } = query;
  return {
    from,
    to,
    axis,
    filter: {
      userIds: user_id === undefined ? undefined : [user_id],
      sessionIds: session_id === undefined ? undefined : [session_id],
      tags: tag === undefined ? undefined : [tag],
    },
    topic,
    fadedBelow: faded_below,
    limit,
    digest: format === 'prompt' ? { tokenBudget: token_budget } : undefined,
  };
}

/** Makes the reply to `GET /diff`. */
export function diffItem({ rendered, ...diff }: MemoryDiff): DiffReply {
  return {
    ...diff,
    added: diff.added.map(entryItem),
    changed: diff.changed.map(({ before, fields, ...entry }) => ({
      ...entryItem(entry),
      before: storedMemoryItem(before),
      fields: fields.map((field) => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
    })),
    superseded: diff.superseded.map(({ by, ...entry }) => ({
      ...entryItem(entry),
      by: by === null ? null : storedMemoryItem(by),
    })),
    contradicted: diff.contradicted.map(({ a, b, ...pair }) => ({
      a: storedMemoryItem(a),
      b: storedMemoryItem(b),
      ...pair,
    })),
    ended: diff.ended.map(entryItem),
    archived: diff.archived.map(entryItem),
    restored: diff.restored.map(entryItem),
    faded: diff.faded.map(({ memory, salienceFrom, salienceTo }) => ({
      memory: storedMemoryItem(memory),
      salience_from: salienceFrom,
      salience_to: salienceTo,
    })),
    ...rendered,
  };
}

function entryItem({ memory, at }: DiffEntry): DiffReply['added'][number] {
  return { memory: storedMemoryItem(memory), at };
}

/** Estimates the memory that the memories of a difference take, in bytes. */
export function diffBytes({
  added,
  changed,
  superseded,
  contradicted,
  ended,
  archived,
  restored,
  faded,
}: MemoryDiff): number {
  const memories = [
    ...[...added, ...changed, ...superseded, ...ended, ...archived, ...restored, ...faded].map(({ memory }) => memory),
    ...changed.map(({ before }) => before),
    ...superseded.flatMap(({ by }) => by ?? []),
    ...contradicted.flatMap(({ a, b }) => [a, b]),
  ];
  return memories.reduce((sum, memory) => sum + 2 * charactersOf(memory) + 2_000, 0);
}
