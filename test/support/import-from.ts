import fs from 'node:fs';
import path from 'node:path';
import type { ForeignLine } from '../../src/cli/importers/format.ts';
import { formatNamed } from '../../src/cli/importers/formats.ts';
import { openSource } from '../../src/cli/open-source.ts';
import { tempFolder } from './temp-folder.ts';

/** What an importer made of a source: the lines, and what it reported as read, skipped, ignored or damaged. */
export interface Outcome {
  readonly lines: readonly ForeignLine[];
  readonly read: number;
  readonly skipped: Readonly<Record<string, number>>;
  readonly passedOver: readonly string[];
  readonly damages: readonly string[];
}

/**
 * Reads a source as `cairn import` does, without a server.
 * @param opened is called between the opening of the source and the first read
 */
export async function importFrom(format: string, target: string, opened = () => {}): Promise<Outcome> {
  const lines: ForeignLine[] = [];
  const skipped: Record<string, number> = {};
  const passedOver: string[] = [];
  const damages: string[] = [];
  let read = 0;
  const source = await openSource(target);
  opened();
  const context = {
    source,
    userId: undefined,
    read: () => void (read += 1),
    skip: (reason: string) => void (skipped[reason] = (skipped[reason] ?? 0) + 1),
    passOver: (field: string) => void passedOver.push(field),
    damaged: (message: string) => void damages.push(message),
  };
  for await (const line of formatNamed(format).lines(context)) lines.push(line);
  source.close();
  return { lines, read, skipped, passedOver, damages };
}

/** Imports a JSON value as a source with the single file conversations.json. */
export function importJson(format: string, value: unknown): Promise<Outcome> {
  const file = path.join(tempFolder(), 'conversations.json');
  fs.writeFileSync(file, JSON.stringify(value));
  return importFrom(format, file);
}

/** Returns the texts of the imported memories. */
export const textsOf = ({ lines }: Outcome) =>
  lines.flatMap(({ content }) => (typeof content === 'string' ? [content] : []));
