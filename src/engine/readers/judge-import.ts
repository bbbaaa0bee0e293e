import { judgeLine } from '../commands/judge-import.ts';
import type { ImportOutcome, PortableLine } from '../types.ts';
import type { ReadContext } from './read-context.ts';

/**
 * Tells what an import of these lines would do, as far as it depends on what is stored. What a line refers to may be
 * in a line before it, so a missing memory or document is no reason to refuse it here.
 */
export function judgeImport(
  { open, clock }: ReadContext,
  { lines }: { readonly lines: readonly PortableLine[] },
): ImportOutcome[] {
  const { store } = open();
  return store.read(() =>
    lines.map((line): ImportOutcome => {
      const judged = judgeLine(store, line, clock.now());
      const isMissing = judged.kind === 'refused' && judged.error.code === 'not_found';
      return judged.kind === 'new' || isMissing ? { kind: 'stored' } : judged;
    }),
  );
}
