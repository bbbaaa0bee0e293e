import type {
  AddItem,
  AddReply,
  AuditDetail,
  DeleteReceipt,
  ErasureFilter,
  ImportOutcome,
  PortableLine,
} from '../types.ts';
import type { WriteCommandName, WriteInput, WriteOutput } from './commands.ts';

/** What the audit log records about a command: the action and its details. */
export interface Audited {
  readonly action: string;
  readonly detail: AuditDetail;
}

type Describe<N extends WriteCommandName> = (input: WriteInput<N>, output: WriteOutput<N>) => Audited | null;

/**
 * For each command a function that makes its audit record. The record holds ids, counts and names, never content or a
 * user's name. The function returns null if nothing is recorded. A command that is missing here is not an action of a
 * caller, or it continues one that was recorded already.
 */
const AUDITED: { readonly [N in WriteCommandName]?: Describe<N> } = {
  addMemories: ({ items }, reply) => (reply.replayed ? null : { action: 'memory.add', detail: addedBy(items, reply) }),
  importLines: ({ lines }, { outcomes }) => ({ action: 'import', detail: importedBy(lines, outcomes) }),
  patchMemory: ({ id, patch }, patched) =>
    typeof patched !== 'object'
      ? null
      : {
          action: 'memory.patch',
          detail: {
            id,
            version: patched.memory.version,
            fields: Object.keys(patch).filter((name) => patch[name as keyof typeof patch] !== undefined),
          },
        },
  putItem: (_, put) =>
    typeof put === 'object' && put.changed
      ? { action: 'item.put', detail: { id: put.memory.id, version: put.memory.version } }
      : null,
  // The first commit of a delete is always recorded: a put, or the upkeep, may erase the rest of the item.
  deleteItem: ({ begun }, { receipt }) =>
    begun !== undefined && isEmpty(receipt) ? null : { action: 'item.delete', detail: countsOf(receipt) },
  moveNamespace: (_, { items }) => (items === 0 ? null : { action: 'namespace.rename', detail: { items } }),
  eraseItems: (_, { receipt }) => (isEmpty(receipt) ? null : { action: 'namespace.delete', detail: countsOf(receipt) }),
  changeLog: (_, { replayed, removed, total, first }) =>
    replayed
      ? null
      : removed === 0
        ? { action: 'log.append', detail: { added: total - first } }
        : { action: 'log.replace', detail: { added: total - first, removed } },
  popLog: (_, { popped }) => (popped === null ? null : { action: 'log.pop', detail: {} }),
  clearLog: (_, items) => (items === 0 ? null : { action: 'log.clear', detail: { removed: items } }),
  abandonLogs: (_, logs) => (logs === 0 ? null : { action: 'log.erase', detail: { logs } }),
  eraseItemsOfWriters: ({ filter: { writtenBy = [] } }, { items: removed }) =>
    removed === 0 ? null : { action: 'log.erase', detail: { removed, written_by: writtenBy } },
  deleteMemory: ({ id }, { receipt }) =>
    isEmpty(receipt) ? null : { action: 'memory.delete', detail: { id, ...countsOf(receipt) } },
  hideMatching: ({ filter }, { receipt }) => deletedBy(filter, receipt),
  deleteMatching: ({ filter }, { receipt }) => deletedBy(filter, receipt),
  closeErasure: ({ erasure: { id, kind } }) => ({ action: 'erasure.receipt', detail: { id, kind } }),
  reinforceMemory: ({ id }) => ({ action: 'memory.reinforce', detail: { id } }),
  eraseRecalls: (_, { recalls }) => (recalls === 0 ? null : { action: 'recall.erase', detail: { recalls } }),
  giveFeedback: ({ id, verdict, memoryIds }) => ({
    action: 'recall.feedback',
    detail: { id, verdict, memories: memoryIds.length },
  }),
  putLearned: ({ id }) => ({ action: 'learned.propose', detail: { id } }),
  moveLearned: ({ id, to }) =>
    // A proposal that stays one was about to be accepted.
    to === 'proposed' ? null : { action: to === 'accepted' ? 'learned.accept' : 'learned.revert', detail: { id } },
  undoLinks: ({ writtenBy }, { edges }) =>
    edges === 0 ? null : { action: 'link.undo', detail: { written_by: writtenBy, edges } },
  undoChanges: ({ writtenBy }, { restored, unrestored }) =>
    restored + unrestored === 0
      ? null
      : { action: 'memory.restore', detail: { written_by: writtenBy, restored, unrestored } },
  addDocument: (_, { document, outcome }) => ({ action: 'document.add', detail: { id: document.id, outcome } }),
  replaceDocument: ({ id }, { outcome }) => ({ action: 'document.replace', detail: { id, outcome } }),
  cancelDocument: ({ id }) => ({ action: 'document.cancel', detail: { id } }),
  deleteDocument: ({ id }) => ({ action: 'document.delete', detail: { id } }),
  linkMemories: ({ src, dst, type }) => ({ action: 'link.state', detail: { src, dst, type } }),
  unlinkMemories: ({ src, dst, type }) => ({ action: 'link.remove', detail: { src, dst, type } }),
  supersedeMemory: ({ oldId, newId }) => ({ action: 'memory.supersede', detail: { old_id: oldId, new_id: newId } }),
  contradictMemories: ({ a, b, winner }) => ({ action: 'memory.contradict', detail: { a, b, winner } }),
  requestConsolidation: () => ({ action: 'consolidation.request', detail: {} }),
  undoConsolidations: ({ id }, { undone, cancelled }) =>
    undone === 0 && !cancelled
      ? null
      : { action: 'consolidation.undo', detail: { id, undone, ...(cancelled ? { cancelled: 1 } : {}) } },
  requestReflection: () => ({ action: 'reflection.request', detail: {} }),
  retryJob: ({ id }) => ({ action: 'job.retry', detail: { id } }),
  cancelJob: ({ id }) => ({ action: 'job.cancel', detail: { id } }),
  discardJob: ({ id }) => ({ action: 'job.discard', detail: { id } }),
  requestRun: ({ schedule }, isDue) => (isDue ? { action: `${schedule}.request`, detail: {} } : null),
  putEval: ({ guard, count }) => ({ action: 'eval.put', detail: { items: count, guard: Number(guard) } }),
  deleteEval: () => ({ action: 'eval.delete', detail: {} }),
  eraseEvalItems: (_, { items }) => (items === 0 ? null : { action: 'eval.erase', detail: { items } }),
  appendEvalRun: () => ({ action: 'eval.run', detail: {} }),
  createStandingQuery: (_, { id, webhook }) => ({
    action: 'standing.add',
    detail: { id, ...(webhook === null ? {} : { webhook: webhook.id }) },
  }),
  deleteStandingQuery: ({ id }) => ({ action: 'standing.delete', detail: { id } }),
  eraseStanding: ({ owner: { writtenBy } }, { standingQueries, webhooks }) =>
    standingQueries + webhooks === 0
      ? null
      : { action: 'standing.erase', detail: { written_by: writtenBy, queries: standingQueries, webhooks } },
  createWebhook: ({ kinds }, { id }) => ({ action: 'webhook.add', detail: { id, kinds: [...kinds] } }),
  deleteWebhook: ({ id }) => ({ action: 'webhook.delete', detail: { id } }),
  retryDeliveries: ({ id }, { retried }) => ({ action: 'webhook.retry', detail: { id, deliveries: retried } }),
  startReembed: () => ({ action: 'reembed.start', detail: {} }),
  pauseReembed: () => ({ action: 'reembed.pause', detail: {} }),
  cancelReembed: () => ({ action: 'reembed.cancel', detail: {} }),
  recordAction: (record) => record,
};

/** Returns the audit record of a command that was run; null if the audit log does not record it. */
export function describeCommand(name: WriteCommandName, input: unknown, output: unknown): Audited | null {
  const describe = AUDITED[name] as ((input: unknown, output: unknown) => Audited | null) | undefined;
  return describe?.(input, output) ?? null;
}

function addedBy(items: readonly AddItem[], { outcomes }: AddReply): AuditDetail {
  const ids = outcomes.flatMap((outcome) => (outcome.kind === 'accepted' ? [outcome.id] : []));
  const count = (kind: string) => outcomes.filter((outcome) => outcome.kind === kind).length || undefined;
  return {
    added: ids.length,
    duplicates: count('duplicate'),
    superseding:
      items
        .slice(0, outcomes.length)
        .filter(
          (item, place) =>
            'supersedes' in item && item.supersedes !== undefined && outcomes[place]?.kind !== 'rejected',
        ).length || undefined,
    rejected: count('rejected'),
    first: ids[0],
    last: ids.at(-1),
  };
}

/** Counts the documents, memories, revisions, links and items of session logs that an import stored. */
function importedBy(lines: readonly PortableLine[], outcomes: readonly ImportOutcome[]): AuditDetail {
  const count = (wanted: PortableLine['type']) =>
    lines.filter(({ type }, place) => type === wanted && outcomes[place]?.kind === 'stored').length || undefined;
  return {
    documents: count('document'),
    memories: count('memory'),
    revisions: count('revision'),
    links: count('link'),
    session_items: count('session_item'),
  };
}

function countsOf({ memories, documents }: DeleteReceipt): AuditDetail {
  return { memories, documents };
}

/** Makes the audit record of one batch of a delete by filter; null if the batch deleted nothing. */
function deletedBy(filter: ErasureFilter, receipt: DeleteReceipt): Audited | null {
  if (isEmpty(receipt)) return null;
  return {
    action: 'memory.delete_matching',
    detail: {
      by: Object.keys(filter).filter((name) => filter[name as keyof ErasureFilter] !== undefined),
      ...(filter.writtenBy === undefined ? {} : { written_by: filter.writtenBy }),
      ...countsOf(receipt),
    },
  };
}

function isEmpty({ memories, documents }: DeleteReceipt): boolean {
  return memories + documents === 0;
}
