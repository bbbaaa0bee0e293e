import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import type { TenantOptions } from './tenant-options.ts';

type UpkeepMethods = Pick<Tenant, 'previewDecay' | 'listBackups' | 'requestBackup'>;

/** Makes the methods by which administrators preview a tenant's decay, and list and request its backups. */
export function createUpkeepMethods({ path, config, readers, writer }: TenantOptions): UpkeepMethods {
  return {
    previewDecay: (assumptions, signal) => readers.read(path, 'previewDecay', assumptions, signal),
    listBackups: (page) => readers.read(path, 'listBackups', page),
    async requestBackup() {
      if (config.OM_BACKUP_EVERY === undefined)
        throw new EngineError(
          'conflict',
          'no folder for backups is configured: set OM_BACKUP_FOLDER and OM_BACKUP_EVERY, or run cairn backup FILE',
        );
      if (!(await writer.write(path, 'requestRun', { schedule: 'backup' })))
        throw new EngineError('conflict', 'a backup of this tenant is being made');
    },
  };
}
