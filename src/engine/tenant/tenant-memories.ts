import type { Tenant } from '../engine.ts';
import { isDivisible, optionsOfPart } from '../commands/divisible-adds.ts';
import { spanningReceipt } from '../commands/write-receipt.ts';
import { EngineError, isEngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { isRejected, rejected } from '../rejected-item.ts';
import type { AddOptions, AddReply, NewMemory, RejectedItem } from '../types.ts';
import { writeWhole } from './archive-reflections.ts';
import { endWaiting } from './end-waiting.ts';
import { createEraseMatching } from './erase-matching.ts';
import { createMemoryLists } from './memory-lists.ts';
import { quotaOf } from './quota-of.ts';
import { type Erasure, inSlices } from './tenant-erasure.ts';
import { withReceipt } from './tenant-erasures.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf, screenItems } from './tenant-privacy.ts';

type MemoryMethods = Pick<
  Tenant,
  | 'addMemories'
  | 'patchMemory'
  | 'deleteMemory'
  | 'deleteMemories'
  | 'reinforceMemory'
  | 'getMemory'
  | 'listMemories'
  | 'streamMemories'
  | 'listRevisions'
  | 'streamRevisions'
  | 'timeline'
  | 'sectorStats'
>;

/**
 * Makes the methods by which a tenant adds, returns, changes and erases memories.
 * @param documents deletes the whole document when its root memory is deleted
 */
export function createMemoryMethods(
  options: TenantOptions,
  erasure: Erasure,
  documents: Pick<Tenant, 'getDocument' | 'deleteDocument'>,
): MemoryMethods {
  const { path, metrics, readers, writer, dispatcher } = options;
  const guard = guardOf(options);
  return {
    async addMemories(items, addOptions = {}) {
      const screened = guard.isOn() ? await screenItems(guard, items) : items;
      const add = async (from: number) => {
        const part = await writer.write(path, 'addMemories', {
          ...{ items: screened.slice(from), options: optionsOfPart(addOptions, from), quota: quotaOf(options) },
        });
        await failpoint('after-accept-commit');
        if (part.replayed) return part;
        for (const { kind } of part.outcomes.slice(0, part.taken)) metrics.adds.inc({ outcome: kind });
        if (part.token !== null) dispatcher.dispatch(path, 'encode');
        return part;
      };
      let reply = await add(0);
      while (reply.taken !== undefined && isDivisible(addOptions)) {
        const rest: AddReply | EngineError = await add(reply.taken).catch(orError);
        if (rest instanceof EngineError) return refuseRest(reply, screened, rest, addOptions);
        reply = joinReplies(reply, rest);
      }
      return reply;
    },

    async patchMemory(id, patch, bounds = {}) {
      const { fields, report } = await guard.fields(patch);
      const change = { id, patch: fields, marked: report.marked, ...bounds, quota: quotaOf(options) };
      const { memory, endsWait } = await writeWhole(options, { id }, (archivedTo) =>
        writer.write(path, 'patchMemory', { ...change, archivedTo }),
      );
      if (endsWait) await endWaiting(options);
      dispatcher.dispatch(path, 'encode');
      const isClean = report.marked.length === 0 && Object.keys(report.redacted).length === 0;
      return isClean ? memory : { ...memory, screened: report };
    },

    async deleteMemory(id, { withinTags = [] } = {}) {
      const document = await readers.readFew(path, 'findProvenance', { id });
      // The root memory stands for the whole document.
      if (document?.chunk === null) {
        const { tags } = await documents.getDocument(document.documentId);
        if (!withinTags.every((tag) => tags.includes(tag)))
          throw new EngineError('not_found', 'no memory with this id');
        return documents.deleteDocument(document.documentId, { withinTags });
      }
      const receipt = await withReceipt(options, { kind: 'memory' }, (erasure) =>
        inSlices((last) =>
          writer.write(path, 'deleteMemory', { id, withinTags, erasure, isBegun: last !== undefined }),
        ),
      );
      dispatcher.dispatch(path, 'link');
      return receipt;
    },

    deleteMemories: createEraseMatching(options, erasure),

    reinforceMemory: (id, boost, bounds) =>
      writer.write(path, 'reinforceMemory', { id, boost, ...bounds, quota: quotaOf(options) }),

    getMemory: (id) => readers.readFew(path, 'getMemory', { id }),
    ...createMemoryLists(options),
    timeline: (id, around) => readers.read(path, 'timeline', { ...around, id }),
    sectorStats: () => readers.read(path, 'sectorStats', {}),
  };
}

/** Returns an error of the engine. @throws any other error */
function orError(error: unknown): EngineError {
  if (!isEngineError(error)) throw error;
  return error;
}

/**
 * Returns a reply in which the items that no write took have the error of the write that failed; an item that was
 * refused before keeps its own error. So what was stored is told, and the caller learns whether it may send the others
 * again.
 * @throws the error itself for an add with an Idempotency-Key: the same request stores the others when it is repeated
 */
function refuseRest(
  reply: AddReply,
  items: readonly (NewMemory | RejectedItem)[],
  error: EngineError,
  { idempotency }: AddOptions,
): AddReply {
  if (idempotency !== undefined) throw error;
  const { taken = 0, outcomes } = reply;
  const rest = items.slice(taken).map((item) => (isRejected(item) ? item : rejected(error)));
  return { ...reply, outcomes: [...outcomes.slice(0, taken), ...rest] };
}

/**
 * Returns the reply to an add of which one write took the first items, and another one those after them, or the first
 * of those.
 */
function joinReplies({ taken = 0, outcomes, token, replayed }: AddReply, rest: AddReply): AddReply {
  return {
    outcomes: [...outcomes.slice(0, taken), ...rest.outcomes],
    token: spanningReceipt(token, rest.token),
    replayed: replayed && rest.replayed,
    ...(rest.taken === undefined ? {} : { taken: taken + rest.taken }),
  };
}
