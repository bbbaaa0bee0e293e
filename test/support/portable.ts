import { LINE_SCHEMAS } from '../../src/api/schemas/portable.ts';
import type { Tenant } from '../../src/engine/engine.ts';
import type { ExportOptions, ImportOutcome, PortableLine } from '../../src/engine/types.ts';

/** Returns the whole export of a tenant as one text. */
export async function exportText(tenant: Tenant, options: ExportOptions = {}): Promise<string> {
  let text = '';
  for await (const piece of tenant.exportLines(options)) text += piece;
  return text;
}

/** Parses each line of an export as JSON. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Parses the lines between the first and the last line of an export, in the form that an import takes. */
export function portableLines(text: string): PortableLine[] {
  return jsonLines(text)
    .filter(({ type }) => type !== 'cairn.export' && type !== 'end')
    .map((line) => LINE_SCHEMAS[line['type'] as keyof typeof LINE_SCHEMAS].parse(line) as PortableLine);
}

/** Imports an export in groups of `size` lines, as the API does. */
export async function importText(tenant: Tenant, text: string, size = 50): Promise<ImportOutcome[]> {
  const lines = portableLines(text);
  const outcomes: ImportOutcome[] = [];
  for (let at = 0; at < lines.length; at += size)
    outcomes.push(...(await tenant.importLines(lines.slice(at, at + size))));
  return outcomes;
}
