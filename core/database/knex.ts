/** Apart from the rest, so that it can be built as one file: knex and lodash are three hundred modules. */
export { default, type Knex } from 'knex'
