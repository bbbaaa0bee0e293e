import type { Config } from '../config.ts';
import { DAY_MS } from '../dynamics.ts';
import type { Clock } from '../ports.ts';
import { appendAudit, iterateAudit, listAudit, purgeAudit, readAuditSlice, verifyAudit } from '../store/audit-chain.ts';
import type { ControlFile } from './control-file.ts';
import type { ServiceAudit } from './service-audit.ts';

/** Key id in the record of a command on the server's own machine, which needs no key. */
const BY_CLI = 'cli';

/** Greatest number of old records that one append removes. */
const PURGE_SLICE = 100;

/** Opens the audit log in the control database. The caller closes the file. */
export function openServiceAudit(
  file: ControlFile,
  { OM_AUDIT, OM_AUDIT_DAYS }: Pick<Config, 'OM_AUDIT' | 'OM_AUDIT_DAYS'>,
  clock: Clock,
): ServiceAudit {
  const chain = { prepare: (sql: string) => file.prepare(sql) };
  return {
    append(action, detail, keyId = BY_CLI) {
      if (OM_AUDIT === 'off') return;
      const at = clock.now();
      const write = () => {
        appendAudit(chain, { at, keyId, action, detail });
        purgeAudit(chain, at - OM_AUDIT_DAYS * DAY_MS, PURGE_SLICE);
      };
      if (file.isInTransaction) write();
      else file.write(write);
    },
    list: (filter, signal) => listAudit(filter, (part) => readAuditSlice(chain, part), signal),
    verify: () => file.read(() => verifyAudit(chain)),
    all: () => iterateAudit(chain),
  };
}
