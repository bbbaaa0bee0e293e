import { MAX_ARCHIVED, type ManyReflections } from '../commands/archive-reflections.ts';
import { EngineError } from '../errors.ts';
import type { SourceName } from '../readers/active-reflections.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Greatest number of times that the reflections on a memory are listed for one change of it. */
const MAX_LOOKS = 100;

/**
 * Repeats the write that changes a memory until the whole change is written. If too many reflections (memories of
 * conclusions) rest on the memory for one commit, they are listed by a reader thread and archived in small commits
 * first, so none of them is active once its source has another text. If the process ends meanwhile, some are archived
 * although the memory is unchanged.
 * @param write writes the change. It is given the highest memory number of the file when the reflections were last
 *   listed; undefined before they are. It returns undefined if only a part of the change was written, and `many
 *   reflections` if the reflections must be listed and archived before it can be
 * @returns what `write` returns once all is written
 * @throws EngineError `conflict` if that is still so after 100 lists of the reflections, since others make new ones;
 *   errors of `write`
 */
export async function writeWhole<T extends object>(
  options: TenantOptions,
  source: SourceName,
  write: (archivedTo: number | undefined) => Promise<T | ManyReflections | undefined>,
): Promise<T> {
  let archivedTo: number | undefined;
  for (let looks = 0; looks < MAX_LOOKS;) {
    const result = await write(archivedTo);
    if (typeof result === 'object') return result;
    if (result === undefined) continue;
    archivedTo = await archiveAll(options, source);
    looks += 1;
  }
  throw new EngineError('conflict', 'reflections on this memory are being made, too many to archive: try again later');
}

/**
 * Archives all active reflections drawn from a memory, directly or through other reflections, in commits of at most 100
 * (`MAX_ARCHIVED`).
 * @returns the highest memory number of the file when they were listed, so that later reflections can be told from them
 */
export async function archiveAll({ path, readers, writer }: TenantOptions, source: SourceName): Promise<number> {
  const { memoryNos, newest } = await readers.read(path, 'listActiveReflections', source);
  for (let at = 0; at < memoryNos.length; at += MAX_ARCHIVED) {
    const some = memoryNos.slice(at, at + MAX_ARCHIVED);
    while (!(await writer.write(path, 'archiveReflections', { memoryNos: some })));
  }
  return newest;
}
