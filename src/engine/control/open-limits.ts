import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { ControlFile } from './control-file.ts';
import { createGenerationLook, GENERATION_LOOK_MS } from './generation-look.ts';
import type { ServiceAudit } from './service-audit.ts';
import {
  LIMITS_OF_KEYS,
  LIMIT_NAMES,
  LIMIT_SETTING,
  MAX_LIMIT,
  type LimitName,
  type LimitRecords,
  type Limits,
  type LimitScope,
} from './limits.ts';

interface LimitRow {
  readonly tenant_id: string;
  readonly key_id: string;
  readonly name: LimitName;
  readonly value: number;
}

/** Opens the limits in the control database. The caller closes the file. */
export function openLimits(file: ControlFile, config: Config, audit: ServiceAudit): LimitRecords {
  const { statements } = file;
  const list = file.prepare<[], LimitRow>(
    'SELECT tenant_id, key_id, name, value FROM limits ORDER BY tenant_id, key_id, name',
  );
  const put = file.prepare<[string, string, string, number]>(
    `INSERT INTO limits (tenant_id, key_id, name, value) VALUES (?, ?, ?, ?)
     ON CONFLICT (tenant_id, key_id, name) DO UPDATE SET value = excluded.value`,
  );
  const remove = file.prepare<[string, string, string]>(
    'DELETE FROM limits WHERE tenant_id = ? AND key_id = ? AND name = ?',
  );
  const ofService = Object.fromEntries(LIMIT_NAMES.map((name) => [name, config[LIMIT_SETTING[name]]])) as Limits;

  const look = createGenerationLook(file);
  const read = () =>
    look.read(() => {
      const own = new Map<string, Partial<Record<LimitName, number>>>();
      for (const { tenant_id, key_id, name, value } of list.all()) {
        const place = placeOf({ tenantId: tenant_id, keyId: key_id });
        own.set(place, { ...own.get(place), [name]: value });
      }
      return { own, inForce: new Map<string, Limits>() };
    });
  let known = read();
  const current = () => (look.hasChanged(GENERATION_LOOK_MS) ? (known = read()) : known);

  return {
    inForce(scope) {
      const { own, inForce } = current();
      // Only scopes with limits of their own are cached, since an admin may ask about any key, even a made-up one.
      const tenant = placeOf({ tenantId: scope.tenantId });
      const place = [placeOf(scope), tenant].find((name) => own.has(name));
      if (place === undefined) return ofService;
      let limits = inForce.get(place);
      if (limits === undefined) {
        limits = { ...ofService, ...own.get(tenant), ...own.get(place) };
        inForce.set(place, limits);
      }
      return limits;
    },
    own: (scope) => current().own.get(placeOf(scope)) ?? {},
    require: (scope) => requireScope(file, scope),
    change(scope, changes, by) {
      const { tenantId, keyId = '' } = scope;
      file.write(() => {
        requireScope(file, scope);
        for (const [name, value] of Object.entries(changes) as [LimitName, number | null | undefined][]) {
          if (value === undefined) continue;
          if (keyId !== '' && !LIMITS_OF_KEYS.has(name)) {
            throw new EngineError(
              'invalid',
              `${name}: a key has no such limit, only ${[...LIMITS_OF_KEYS].join(', ')}`,
            );
          }
          if (value === null) remove.run(tenantId, keyId, name);
          else put.run(tenantId, keyId, name, checked(name, value));
        }
        statements.bumpGeneration.run();
        const detail = { tenant: tenantId, ...(keyId === '' ? {} : { key: keyId }), limits: Object.keys(changes) };
        audit.append('limit.change', detail, by);
      });
      known = read();
    },
  };
}

const placeOf = ({ tenantId, keyId = '' }: LimitScope) => `${tenantId} ${keyId}`;

function checked(name: LimitName, value: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= MAX_LIMIT) return value;
  throw new EngineError('invalid', `${name}: expected a whole number in 0..${MAX_LIMIT}; 0 for no limit`);
}

function requireScope({ statements }: ControlFile, { tenantId, keyId }: LimitScope): void {
  if (statements.findTenant.get(tenantId) === undefined) throw new EngineError('not_found', 'no such tenant');
  if (keyId === undefined || keyId === 'environment') return;
  const key = statements.findKey.get(keyId);
  const isHere = key !== undefined && (JSON.parse(key.tenants) as string[]).includes(tenantId);
  // The message does not repeat the id, which may be a whole secret, given by mistake.
  if (!isHere) throw new EngineError('not_found', 'no key of this tenant has this id');
}
