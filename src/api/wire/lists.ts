/** Translates lists with cursors between the engine's names and the field names of the API. */
import type { CursorPage, NameSummary, NamespaceSummary } from '../../engine/index.ts';
import type { NameListItem, NamespaceListItem } from '../schemas/lists.ts';
import { LIMITS } from '../schemas/value-limits.ts';

export function toListPage(body: {
  readonly limit?: number | null | undefined;
  readonly cursor?: string | null | undefined;
}): CursorPage {
  return { limit: body.limit ?? LIMITS.defaultPage, cursor: body.cursor ?? undefined };
}

export function namespaceItem({ path, items, lastUsedAt }: NamespaceSummary): NamespaceListItem {
  return { namespace: path, items, last_used_at: lastUsedAt };
}

export function nameItem({ name, memories, lastUsedAt, logItems }: NameSummary): NameListItem {
  const logged = logItems === undefined ? {} : { log_items: logItems };
  return { name, memories, ...logged, last_used_at: lastUsedAt };
}
