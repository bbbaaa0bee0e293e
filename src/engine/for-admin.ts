/**
 * The exports for commands that work on the files of a data folder directly, mostly while no server runs. They are no
 * part of the package.
 */

export { addModel } from './adapters/add-model.ts';
export { backupDatabase, keyFileOf, restoreDatabase } from './admin/backup.ts';
export { changeDataKeys, changeMasterKey, decryptFolder, encryptFolder, encryptionStatus } from './admin/encryption.ts';
export { readRedis } from './adapters/read-redis.ts';
export { type ErasureSearch, openErasureSearch, type Searched } from './admin/verify-erasure.ts';
export { CATALOGUE } from './adapters/model-catalogue.ts';
export { readKeyFile } from './config.ts';
export { exportWrappedKey, importWrappedKey } from './control/key-file.ts';
export { fingerprintOf } from './control/wrapped-key.ts';
export { keyOfFile, type FileKey } from './find-file-key.ts';
export { exportAuditLog, verifyAuditLog } from './admin/audit-log.ts';
export { previewDecay } from './admin/preview-decay.ts';
export { rebuildEntities } from './admin/rebuild-entities.ts';
export { rebuildText } from './admin/rebuild-text.ts';
export { rebuildVectorIndex } from './admin/rebuild-vector-index.ts';
export { move, type MoveReport } from './move/move-folder.ts';
export { moveTenant } from './move/move-between-databases.ts';
export { databaseForm } from './store/database-form.ts';
export { scanStore, type ScannedPlace } from './admin/scan.ts';
export { requireUnused } from './store/check-database.ts';
export { countByState } from './store/memory-counts.ts';
export { openOpenMemoryFile, type OpenMemoryFile } from './store/openmemory-file.ts';
export { openStore } from './store/open-store.ts';
export { deleteInfo, putInfo } from './store/store-info.ts';
export { reindexWaiting } from './store/word-index/waiting-contexts.ts';
export { countVectors } from './store/vectors.ts';
export { openTenant, REBUILDING } from './tenant-file/open-tenant.ts';
