import {
  DEFAULT_TENANT,
  type PrivacyMode,
  PRIVACY_MODES,
  privacySetting,
  readPrivacyPolicy,
  SENSITIVE_GROUPS,
  type SensitiveGroup,
} from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { withDataFolder } from '../data-folder.ts';
import { dim, print, table } from '../terminal.ts';

interface Whose {
  readonly tenant?: string;
}

/**
 * Runs `cairn privacy show`: prints what happens to secrets and to personal data in new texts of a tenant (the mode of
 * each group).
 */
export async function showPrivacy({ tenant = DEFAULT_TENANT }: Whose): Promise<void> {
  await withDataFolder(({ control, config, pathOf }) => {
    pathOf(tenant);
    const policy = readPrivacyPolicy(control, config, tenant);
    const [head, ...body] = table(
      [['group', 'mode'], ...SENSITIVE_GROUPS.map((group) => [group, policy[group]])],
      '<<',
    );
    print(dim(head!), ...body);
  });
}

/**
 * Runs `cairn privacy set GROUP=MODE…`: changes what happens to secrets or personal data in new texts. A group that is
 * not named keeps its mode.
 * @throws CliError for an unknown group or mode
 */
export async function setPrivacy(assignments: readonly string[], { tenant = DEFAULT_TENANT }: Whose): Promise<void> {
  const changes = Object.fromEntries(assignments.map(parseAssignment));
  await withDataFolder(({ control, config, pathOf }) => {
    pathOf(tenant);
    control.audit.append('setting.change', { tenant, name: 'privacy' });
    control.putSetting(tenant, ...privacySetting({ ...readPrivacyPolicy(control, config, tenant), ...changes }));
    print('done; running servers apply it from the next write on');
  });
}

function parseAssignment(text: string): [SensitiveGroup, PrivacyMode] {
  const [, name, value] = /^(\w+)=(\w+)$/.exec(text) ?? [];
  const group = SENSITIVE_GROUPS.find((each) => each === name);
  const mode = PRIVACY_MODES.find((each) => each === value);
  if (group !== undefined && mode !== undefined) return [group, mode];
  throw new CliError(
    `${text}: expected a group (${SENSITIVE_GROUPS.join(', ')}), = and a mode (${PRIVACY_MODES.join(', ')})`,
  );
}
