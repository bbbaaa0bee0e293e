import { CliError } from '../cli-error.ts';
import { chatgpt } from './chatgpt.ts';
import { claude } from './claude.ts';
import type { ImportFormat, ImportSource } from './format.ts';
import { notes } from './notes.ts';
import { langgraph, mem0, serverMemory, zep } from './records.ts';

/** Formats of other programs that an import reads, in the order in which a source is compared with them. */
const IMPORT_FORMATS: readonly ImportFormat[] = [chatgpt, claude, serverMemory, langgraph, zep, mem0, notes];

/**
 * Finds a format by its name.
 * @throws CliError with exit code 2 for an unknown one
 */
export function formatNamed(name: string): ImportFormat {
  const format = IMPORT_FORMATS.find((one) => one.name === name);
  if (format !== undefined) return format;
  const names = IMPORT_FORMATS.map((one) => one.name).join(', ');
  throw new CliError(`unknown format ${name}: expected one of cairn, lines, openmemory, ${names}`, { exitCode: 2 });
}

/** Finds the first format that a source looks like; undefined if it looks like none. */
export function formatOf(source: Pick<ImportSource, 'names' | 'head'>): ImportFormat | undefined {
  return IMPORT_FORMATS.find((format) => format.detect(source));
}
