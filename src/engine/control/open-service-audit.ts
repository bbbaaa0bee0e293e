import type { Config } from '../config.ts';
import { DAY_MS } from '../dynamics.ts';
import type { Clock } from '../ports.ts';
import { appendAudit, iterateAudit, listAudit, purgeAudit, verifyAudit } from '../store/audit-chain.ts';
import { immediately, type ControlFile } from './control-file.ts';
import type { ServiceAudit } from './service-audit.ts';

/** Stands in a record for a command on the server's own machine, which needs no key. */
const BY_CLI = 'cli';

/** Most old records that one append removes. */
const PURGE_SLICE = 100;

/** Opens the log in the control database. The caller closes the file. */
export function openServiceAudit(
  file: ControlFile,
  { OM_AUDIT, OM_AUDIT_DAYS }: Pick<Config, 'OM_AUDIT' | 'OM_AUDIT_DAYS'>,
  clock: Clock,
): ServiceAudit {
  const { db } = file;
  const chain = { prepare: (sql: string) => db.prepare<unknown[], unknown>(sql) };
  return {
    append(action, detail, keyId = BY_CLI) {
      if (OM_AUDIT === 'off') return;
      const at = clock.now();
      const write = () => {
        appendAudit(chain, { at, keyId, action, detail });
        purgeAudit(chain, at - OM_AUDIT_DAYS * DAY_MS, PURGE_SLICE);
      };
      if (db.inTransaction) write();
      else immediately(file, write);
    },
    list: (filter) => listAudit(chain, filter),
    verify: () => db.transaction(() => verifyAudit(chain))(),
    all: () => iterateAudit(chain),
  };
}
