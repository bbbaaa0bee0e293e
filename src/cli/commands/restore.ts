import path from 'node:path';
import { restoreDatabase } from '../../engine/for-admin.ts';
import { CliError } from '../cli-error.ts';
import { withExclusiveDataFolder } from '../data-folder.ts';
import { startProgress } from '../progress.ts';
import { bytes, counted, print } from '../terminal.ts';

/** Runs `cairn restore FILE`: replaces all memories of a tenant by a backup. @throws CliError without `yes` */
export async function restore(
  file: string,
  { tenant, yes }: { readonly tenant?: string; readonly yes?: boolean },
): Promise<void> {
  if (!yes)
    throw new CliError('this replaces all memories of the tenant by the backup: confirm with --yes', {
      exitCode: 2,
    });
  await withExclusiveDataFolder(async ({ pathOf }) => {
    const to = pathOf(tenant);
    const progress = startProgress('Restoring', 1);
    const { memories, kept, lost } = await restoreDatabase({
      from: path.resolve(file),
      to,
      now: Date.now(),
      onProgress: (done, total) => progress.update(done / total, `${bytes(done)} of ${bytes(total)}`),
    }).finally(() => progress.stop());
    print(`${counted(memories, 'memory', 'memories')} restored to ${to}`);
    if (lost > 0) {
      print(
        `${counted(lost, 'document')} had not been read when the backup was made, and the files are not here: ` +
          'send them again (they end as failed, upload_missing)',
      );
    }
    if (kept !== null) print(`what was there before is kept as ${path.basename(kept)}`);
  });
}
