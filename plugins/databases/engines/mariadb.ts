import { mysqlDialect } from './mysql-dialect.js'

export const engine = mysqlDialect('MARIADB')
