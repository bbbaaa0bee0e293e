import { judgeLine } from '../commands/judge-import.ts';
import { findDocumentTwin, findTwinById } from '../store/import-rows.ts';
import type { Store } from '../store/open-store.ts';
import type { ImportOutcome, PortableLine, PortableLogItem } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/** What an import of a line would do, as far as it depends on what is stored. */
export interface JudgedImport {
  /** `stored` also for a line that refers to something missing, which a line before it may bring. */
  readonly outcome: ImportOutcome;
  /** What the line refers to and is not stored, by the names of its fields. */
  readonly missing: readonly { readonly name: string; readonly id: string }[];
}

/** Judges lines of an import against what is stored. */
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

/** Names a place in a session log. */
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
