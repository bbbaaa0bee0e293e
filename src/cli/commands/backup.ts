import path from 'node:path';
import { backupDatabase, exportWrappedKey, keyFileOf } from '../../engine/for-admin.ts';
import { DEFAULT_TENANT } from '../../engine/index.ts';
import { withDataFolder } from '../data-folder.ts';
import { startProgress } from '../progress.ts';
import { bytes, counted, print } from '../terminal.ts';

/**
 * Runs `cairn backup FILE`: copies the file of a tenant (by default the default tenant) into the new file FILE, and
 * checks the copy. If the tenant is encrypted, its key is written into a file beside the copy; that key is itself
 * encrypted with the master key. Uploaded documents that were not processed yet are not in the copy.
 */
export async function backup(file: string, { tenant }: { readonly tenant?: string }): Promise<void> {
  await withDataFolder(async ({ config, control, fileOf }) => {
    const from = fileOf(tenant);
    const wrappedKey = exportWrappedKey(config, tenant ?? DEFAULT_TENANT);
    const progress = startProgress('Copying', 1);
    const {
      memories,
      bytes: size,
      unread,
    } = await backupDatabase({
      from,
      to: path.resolve(file),
      wrappedKey,
      onProgress: (done, total) => progress.update(done / total, `${bytes(done)} of ${bytes(total)}`),
    }).finally(() => progress.stop());
    control.audit.append('backup.create', { tenant: tenant ?? DEFAULT_TENANT, memories, bytes: size });
    print(`${file}: ${counted(memories, 'memory', 'memories')}, ${bytes(size)}, checked from end to end`);
    if (wrappedKey !== null) print(`encrypted; a restore needs the master key and ${keyFileOf(file)}`);
    if (unread > 0) {
      print(
        `not in it: the files of ${counted(unread, 'document')} that had not been read yet. ` +
          'Back up again when they are read, or send them again after a restore',
      );
    }
  });
}
