import { DEFAULT_TENANT, LIMIT_NAMES, type LimitChanges, type LimitName, type LimitScope } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { withDataFolder } from '../data-folder.ts';
import { dim, print, table } from '../terminal.ts';

interface Whose {
  readonly tenant?: string;
  readonly key?: string;
}

/**
 * Runs `cairn limits show`: prints the limits that apply to a tenant or a key, and which of them were set for this
 * tenant or key itself.
 * @throws EngineError `not_found` if the tenant has no such key
 */
export async function showLimits(whose: Whose): Promise<void> {
  await withDataFolder(({ control, pathOf }) => {
    pathOf(whose.tenant);
    control.limits.require(scopeOf(whose));
    const own = control.limits.own(scopeOf(whose));
    const rows = Object.entries(control.limits.inForce(scopeOf(whose))).map(([name, value]) => [
      name,
      value === 0 ? 'no limit' : String(value),
      own[name as LimitName] === undefined ? '' : 'its own',
    ]);
    const [head, ...body] = table([['limit', 'value', ''], ...rows], '<><');
    print(dim(head!), ...body);
  });
}

/**
 * Runs `cairn limits set NAME=VALUE…`: sets limits of a tenant or a key; 0 means no limit.
 * @throws CliError for an unknown name or a value that is not a number
 */
export async function setLimits(assignments: readonly string[], whose: Whose): Promise<void> {
  const changes = assignments.map((text) => {
    const [, name, value] = /^(\w+)=(\d{1,10})$/.exec(text) ?? [];
    if (value === undefined) throw new CliError(`${text}: expected a limit and a number, such as queries=600`);
    return [nameOf(name!), Number(value)] as const;
  });
  await changeLimits(Object.fromEntries(changes), whose);
}

/**
 * Runs `cairn limits unset NAME…`: removes limits that were set for a tenant or a key. Then the more general limit
 * applies again: for a key that of its tenant, for a tenant that of the settings.
 */
export async function unsetLimits(names: readonly string[], whose: Whose): Promise<void> {
  await changeLimits(Object.fromEntries(names.map((name) => [nameOf(name), null])), whose);
}

async function changeLimits(changes: LimitChanges, whose: Whose): Promise<void> {
  await withDataFolder(({ control }) => {
    control.limits.change(scopeOf(whose), changes);
    print('done; running servers apply it within a second');
  });
}

const scopeOf = ({ tenant = DEFAULT_TENANT, key }: Whose): LimitScope => ({ tenantId: tenant, keyId: key });

function nameOf(name: string): LimitName {
  const known = LIMIT_NAMES.find((each) => each === name);
  if (known === undefined) throw new CliError(`${name}: no such limit; there are ${LIMIT_NAMES.join(', ')}`);
  return known;
}
