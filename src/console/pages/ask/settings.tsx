import { address, changeParams } from '../../address.ts';
import { Check, Choice, Field } from '../../parts/basics.tsx';
import { localTime } from '../../parts/format.ts';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';
import { AlsoAsk } from './also-ask.tsx';

/** Names of the weights of each profile. */
const WEIGHTS: Readonly<Record<string, readonly string[]>> = {
  composite: ['similarity', 'salience', 'recency', 'waypoint'],
  activation: ['activation', 'recency', 'strength', 'confidence'],
  retention: ['alpha'],
  fusion: [],
};
const PROFILES = ['composite', 'activation', 'retention', 'fusion'];
const RERANKERS = ['builtin', 'none', 'llm'];
const CUTS = ['none', 'relative', 'exact'];

/**
 * Shows inputs for the fields of a query other than its text.
 * @param prefix prefix of the names of the parameters, for the second settings in a comparison
 */
export function Settings({ prefix = '' }: { prefix?: string }) {
  const hasMore = [...address.value.params.keys()].some(
    (name) => name.startsWith(prefix) && MORE.test(name.slice(prefix.length)),
  );
  return (
    <div class="stack">
      {prefix === '' && <Scope />}
      <details open={hasMore || prefix !== ''}>
        <summary>{texts.ask.settings}</summary>
        <div class="stack">
          <Ranking prefix={prefix} />
          <Filters prefix={prefix} />
        </div>
      </details>
    </div>
  );
}

/** Matches parameters that are shown under “More settings”. */
const MORE =
  /^(as_of|profile|weights|min_score|vector_weight|max_hops|rerank|cut|deep_recall|entity_graph|filters\.(?!sessions))/;

function Scope() {
  const bound = session.value?.caller?.user_id ?? null;
  return (
    <div class="fields">
      {bound === null && <Param name="user_id" label={texts.fields.user} placeholder={texts.fields.anyone} />}
      <Param name="filters.sessions" label={texts.fields.session} placeholder={texts.fields.any} />
      <Param name="k" label={texts.fields.k} type="number" placeholder="8" />
      <AlsoAsk />
    </div>
  );
}

function Ranking({ prefix }: { prefix: string }) {
  const { params } = address.value;
  const profile = params.get(`${prefix}profile`) ?? 'composite';
  const choose = (name: string) => (value: string) => changeParams({ [prefix + name]: value });
  return (
    <div class="fields">
      <Choice
        label={texts.fields.profile}
        value={profile}
        options={PROFILES}
        onChange={(next) => changeParams({ ...noWeights(prefix), [`${prefix}profile`]: next })}
      />
      {WEIGHTS[profile]?.map((weight) => (
        <Param
          key={weight}
          prefix={prefix}
          name={`weights.${weight}`}
          label={texts.fields.weight(weight)}
          type="number"
          step={0.05}
        />
      ))}
      <Param prefix={prefix} name="min_score" label={texts.fields.floor} type="number" step={0.05} placeholder="0.3" />
      <Param prefix={prefix} name="vector_weight" label={texts.fields.vectorWeight} type="number" step={0.05} />
      <Param prefix={prefix} name="max_hops" label={texts.fields.maxHops} type="number" step={1} placeholder="2" />
      <Choice
        label={texts.fields.rerank}
        value={params.get(`${prefix}rerank`) ?? 'builtin'}
        options={RERANKERS}
        onChange={choose('rerank')}
      />
      <Choice
        label={texts.fields.cut}
        value={params.get(`${prefix}cut`) ?? 'none'}
        options={CUTS}
        onChange={choose('cut')}
      />
    </div>
  );
}

/**
 * Returns parameter changes that remove all weights from the address. It is used when another profile is chosen, since
 * each profile has other weights.
 */
function noWeights(prefix: string): Record<string, string> {
  const names = Object.values(WEIGHTS).flat();
  return Object.fromEntries(names.map((name) => [`${prefix}weights.${name}`, '']));
}

function Filters({ prefix }: { prefix: string }) {
  const { params } = address.value;
  const name = `${prefix}deep_recall`;
  return (
    <div class="fields">
      <TimeParam name={`${prefix}as_of.valid`} label={texts.fields.asOfValid} />
      <TimeParam name={`${prefix}as_of.recorded`} label={texts.fields.asOfRecorded} />
      <Param prefix={prefix} name="filters.tags" label={texts.fields.tags} placeholder={texts.fields.commas} />
      <Param prefix={prefix} name="filters.sectors" label={texts.fields.sectors} placeholder={texts.fields.commas} />
      <Param prefix={prefix} name="filters.types" label={texts.fields.types} placeholder={texts.fields.commas} />
      <Param prefix={prefix} name="filters.metadata" label={texts.fields.metadata} placeholder='{"team": "platform"}' />
      <Check
        label={texts.fields.deepRecall}
        checked={params.get(name) === 'true'}
        onChange={(checked) => changeParams({ [name]: checked ? 'true' : '' })}
      />
    </div>
  );
}

interface ParamProps {
  readonly name: string;
  readonly label: string;
  readonly prefix?: string;
  readonly type?: 'text' | 'number';
  readonly step?: number;
  readonly placeholder?: string;
}

/** Shows an input for one parameter of the address. */
function Param({ name, label, prefix = '', type = 'text', step = 1, placeholder }: ParamProps) {
  const full = prefix + name;
  return (
    <Field
      label={label}
      type={type}
      {...(type === 'number' ? { step, min: 0 } : {})}
      placeholder={placeholder}
      value={address.value.params.get(full) ?? ''}
      onChange={(value) => changeParams({ [full]: value })}
    />
  );
}

function TimeParam({ name, label }: { name: string; label: string }) {
  const value = address.value.params.get(name) ?? '';
  const at = /^\d+$/.test(value) ? Number(value) : Date.parse(value);
  return (
    <Field
      label={label}
      type="datetime-local"
      value={Number.isNaN(at) ? '' : localTime(at)}
      onChange={(next) => changeParams({ [name]: next === '' ? '' : new Date(next).getTime() })}
    />
  );
}
