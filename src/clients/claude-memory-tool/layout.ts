/** Lays out files and folders for the model, in the words of the tool's documentation. */
import { foldersIn, pathOf, type Names } from './file-path.ts';

export interface File {
  readonly namespace: string;
  readonly name: string;
  readonly text: string;
}

/** Number of levels below a folder that its listing shows. */
const LEVELS = 2;
/** Width of a line's number, in characters; a tab follows it. */
const NUMBER_WIDTH = 6;

// Edge runtimes have no `Buffer`.
const encoder = new TextEncoder();

/**
 * Lists a folder and the files and folders up to two levels below it, by path, each with its size (bytes of UTF-8), a
 * folder with that of all files below it. Names that begin with a dot, and `node_modules`, are left out.
 */
export function listingOf(folder: Names, files: readonly File[]): string {
  const sizes = new Map([[pathOf(folder), 0]]);
  for (const { namespace, name, text } of files) {
    const names = [...foldersIn(namespace), name];
    const below = names.slice(folder.length);
    if (below.some((one) => one.startsWith('.') || one === 'node_modules')) continue;
    const size = encoder.encode(text).length;
    for (let level = 0; level <= Math.min(below.length, LEVELS); level++) {
      const path = pathOf(names.slice(0, folder.length + level));
      sizes.set(path, (sizes.get(path) ?? 0) + size);
    }
  }
  const lines = [...sizes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, size]) => `${sizeOf(size)}\t${path}`);
  return (
    `Here're the files and directories up to ${LEVELS} levels deep in ${pathOf(folder)}, ` +
    `excluding hidden items and node_modules:\n${lines.join('\n')}`
  );
}

function sizeOf(bytes: number): string {
  if (bytes < 1024) return `${bytes}B`;
  const kilobytes = bytes / 1024;
  return kilobytes < 1024 ? `${kilobytes.toFixed(1)}K` : `${(kilobytes / 1024).toFixed(1)}M`;
}

/**
 * Joins lines, each after its number and a tab.
 * @param range numbers of the first and last line to show, counted from 1; -1 as the last is the end of the file. By
 *   default all lines are shown
 */
export function numbered(lines: readonly string[], [first = 1, last = -1]: readonly number[] = []): string {
  const from = Math.max(first, 1) - 1;
  return lines
    .slice(from, last === -1 ? undefined : last)
    .map((line, at) => `${String(from + at + 1).padStart(NUMBER_WIDTH)}\t${line}`)
    .join('\n');
}
