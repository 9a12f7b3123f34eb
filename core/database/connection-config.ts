import type pg from 'pg'

/**
 * Whoever may change the database or the role can set these for all connections to come, in which nothing could be written any
 * more, or every other transaction would have to be repeated.
 */
const always = '-c default_transaction_read_only=off -c default_transaction_isolation=read\\ committed'

/**
 * What connects to the database: `ours` wins over what the URL says of the same, other than in pg itself, and its `options` come
 * after those of the URL.
 */
export function connectionConfig<Config extends pg.ClientConfig>(url: string, ours: Config): Config {
  const [base = '', ...rest] = url.split('?')
  const query = rest.join('?')
  const kept = query
    .split('&')
    .filter(pair =>
      [...new URLSearchParams(pair).keys()].every(name => name !== 'options' && !(name in ours))
    )
  const given = new URLSearchParams(query).getAll('options').at(-1)
  return {
    ...ours,
    options: [given, always, ours.options].filter(Boolean).join(' '),
    connectionString: rest.length === 0 ? url : `${base}?${kept.join('&')}`
  }
}
