import { judgeLine } from '../commands/judge-import.ts';
import { findDocumentTwin, findTwinById } from '../store/import-rows.ts';
import type { Store } from '../store/open-store.ts';
import type { ImportOutcome, PortableLine, PortableLogItem } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/** What importing a line would do, judged by what is already stored. */
export interface JudgedImport {
  /**
   * Outcome of the line. It is `stored` also for a line that refers to something missing, which an earlier line of the
   * import may contain.
   */
  readonly outcome: ImportOutcome;
  /**
   * What the line refers to and what is not stored: for each, the name of the line's field and the id of the missing
   * memory, document or log item.
   */
  readonly missing: readonly { readonly name: string; readonly id: string }[];
}

/** Judges lines of an import by what is stored. Nothing is written. */
export function judgeImport(
  { open, clock }: ReadContext,
  { lines }: { readonly lines: readonly PortableLine[] },
): JudgedImport[] {
  const { store } = open();
  return store.read(() =>
    lines.map((line): JudgedImport => {
      const judged = judgeLine(store, line, clock.now());
      if (judged.kind === 'new') return { outcome: { kind: 'stored' }, missing: [] };
      const isMissing = judged.kind === 'refused' && judged.error.code === 'not_found';
      return isMissing
        ? { outcome: { kind: 'stored' }, missing: missingOf(store, line) }
        : { outcome: judged, missing: [] };
    }),
  );
}

/** Returns a key that identifies an item of a session log by its user, session and position. */
export function logItemId({ user_id: user, session_id: session }: PortableLogItem, position: number): string {
  return JSON.stringify([user, session, position]);
}

function missingOf(store: Store, line: PortableLine): JudgedImport['missing'] {
  const memories =
    line.type === 'link'
      ? [
          { name: 'src', id: line.src },
          { name: 'dst', id: line.dst },
        ]
      : line.type === 'revision'
        ? [{ name: 'memory', id: line.memory }]
        : [];
  const documents =
    line.type === 'memory' && line.document !== null ? [{ name: 'document', id: line.document.id }] : [];
  const logItems = line.type === 'session_item' ? [{ name: 'position', id: logItemId(line, line.position - 1) }] : [];
  return [
    ...logItems,
    ...memories.filter(({ id }) => findTwinById(store, id) === undefined),
    ...documents.filter(({ id }) => findDocumentTwin(store, id)?.liveNo == null),
  ];
}
