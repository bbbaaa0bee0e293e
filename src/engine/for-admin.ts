/**
 * The exports for commands that work on the files of a data folder directly, mostly while no server runs. They are no
 * part of the package.
 */

export { backupDatabase, restoreDatabase } from './admin/backup.ts';
export { previewDecay, type SalienceSpread } from './admin/preview-decay.ts';
export { rebuildEntities } from './admin/rebuild-entities.ts';
export { rebuildText } from './admin/rebuild-text.ts';
export { rebuildVectorIndex } from './admin/rebuild-vector-index.ts';
export { requireUnused } from './store/check-database.ts';
export { countByState } from './store/memories.ts';
export { openStore } from './store/open-store.ts';
export { deleteInfo, putInfo } from './store/store-info.ts';
export { countVectors } from './store/vectors.ts';
export { openTenant, REBUILDING } from './tenant-file/open-tenant.ts';
