import { allow, statusResponse, type RouteDeclarer } from 'busbar/sdk'
import { clientOf, signedIn, type AccountService } from './account-service.js'
import { firstUser, loginAnswer, loginBody, loginResult, loginVerifyBody, refusal, setupBody, setupRequired } from './schemas.js'

const group = 'Public'
const perMinute = (max: number) => ({ max, windowSeconds: 60 })

export function signInRoutes (route: RouteDeclarer<AccountService>) {
  route({
    method: 'GET', url: '/api/auth/setup', group, summary: 'Get Setup',
    access: allow.public('says only whether the first user exists'),
    schema: { response: { 200: setupRequired } },
    handler: async (_, { identity }) => ({ setup_required: await identity.isSetupRequired() })
  })
  route({
    method: 'POST', url: '/api/auth/setup', group, summary: 'Setup',
    access: allow.public('makes the first user; refused as soon as there is one'),
    schema: { body: setupBody, response: { 201: firstUser } },
    audit: { action: 'create_user', claims: 'email', resource: 'user', id: { result: 'id' } },
    handler: async ({ body: { instance_name: instanceName, ...account } }, { identity }) =>
      await identity.setUp({ ...account, instanceName })
  })
  route({
    method: 'POST', url: '/api/auth/login', group, summary: 'Login', limit: perMinute(5),
    access: allow.public('a sign-in has no credential but its body'),
    schema: { body: loginBody, response: { 200: loginAnswer } },
    audit: { action: 'login', failure: 'login_failed', claims: 'email', unless: 'challenge', resource: 'user', id: { result: 'user.id' } },
    handler: async (request, account) => await account.logIn(request.body, clientOf(request))
  })
  route({
    method: 'POST', url: '/api/auth/login/verify', group, summary: 'Login Verify', limit: perMinute(5),
    access: allow.public('the challenge in the body is the credential'),
    schema: { body: loginVerifyBody, response: { 200: loginResult } },
    audit: { action: 'login', failure: 'login_2fa_failed', claims: 'user.email', resource: 'user', id: { result: 'user.id' } },
    handler: async (request, { identity }) => signedIn(await identity.verifyLogin(request.body, clientOf(request)))
  })
  route({
    method: 'POST', url: '/api/auth/refresh', group, summary: 'Refresh', limit: perMinute(30),
    access: allow.public('the refresh cookie is the credential; the CSRF token is checked with it'),
    schema: { response: { 200: loginResult, 401: refusal } },
    handler: async (request, account) => await account.refresh(request)
  })
  route({
    method: 'POST', url: '/api/auth/logout', group: 'Profile', summary: 'Logout',
    access: allow.session({ project: 'none', whileEnrolling: true }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'logout', resource: 'user' },
    handler: async ({ caller }, account) => await account.logOut(caller)
  })
}
