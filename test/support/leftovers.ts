/**
 * What the tests of a file have started and made, which goes when the file has ended (`end-of-file.ts`). Test files
 * share this module with all others of their process, so it cannot register a hook itself: only the first file that
 * imports it would have that hook.
 */
export const leftovers = {
  /** Programs that still run. */
  processes: new Set<{ end(signal: NodeJS.Signals): Promise<unknown> }>(),
  /** Paths of folders. */
  folders: new Set<string>(),
};
