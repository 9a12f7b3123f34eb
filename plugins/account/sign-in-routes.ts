import { allow, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import type { Account } from './account.js'
import { clientOf, signedIn } from './account-service.js'
import {
  firstUser,
  loginAnswer,
  loginBody,
  loginResult,
  loginVerifyBody,
  refusal,
  setupBody,
  setupStatus
} from './schemas.js'

const group = 'Public'
const perMinute = (max: number) => ({ max, windowSeconds: 60 })

export function signInRoutes(route: RouteDeclarer<Account>) {
  route({
    method: 'GET',
    url: '/api/auth/setup',
    group,
    operationId: 'GetSetup',
    summary: 'Get Setup',
    access: allow.public('says only whether the first user exists'),
    schema: { response: { 200: setupStatus } },
    handler: async (_, { identity }) => {
      const isRequired = await identity.isSetupRequired()
      return {
        setup_required: isRequired,
        code_required: isRequired && (await identity.isSetupCodeRequired())
      }
    }
  })
  route({
    method: 'POST',
    url: '/api/auth/setup',
    group,
    operationId: 'Setup',
    summary: 'Setup',
    limit: perMinute(10),
    access: allow.public(
      'makes the first user; refused as soon as there is one, and without the one-time code where the network reaches it'
    ),
    schema: { body: setupBody, response: { 201: firstUser } },
    audit: { action: 'create_user', claims: 'email', resource: 'user', id: { result: 'id' } },
    precondition: async ({ headers }, { identity }) => {
      await identity.checkSetupRequest(headers)
    },
    handler: async ({ body: { instance_name: instanceName, code, ...account } }, { identity }) => {
      await identity.checkSetupCode(code)
      return await identity.setUp({ ...account, instanceName })
    }
  })
  route({
    method: 'POST',
    url: '/api/auth/login',
    group,
    operationId: 'Login',
    summary: 'Login',
    limit: perMinute(5),
    access: allow.public('a sign-in has no credential but its body'),
    schema: { body: loginBody, response: { 200: loginAnswer } },
    audit: {
      action: 'login',
      failure: 'login_failed',
      claims: 'email',
      unless: 'challenge',
      resource: 'user',
      id: { result: 'user.id' }
    },
    handler: async (request, { account }) => await account.logIn(request.body, clientOf(request))
  })
  route({
    method: 'POST',
    url: '/api/auth/login/verify',
    group,
    operationId: 'LoginVerify',
    summary: 'Login Verify',
    limit: perMinute(5),
    access: allow.public('the challenge in the body is the credential'),
    schema: { body: loginVerifyBody, response: { 200: loginResult } },
    audit: {
      action: 'login',
      failure: 'login_2fa_failed',
      claims: 'user.email',
      resource: 'user',
      id: { result: 'user.id' }
    },
    handler: async (request, { identity }) =>
      signedIn(await identity.verifyLogin(request.body, clientOf(request)))
  })
  route({
    method: 'POST',
    url: '/api/auth/refresh',
    group,
    operationId: 'Refresh',
    summary: 'Refresh',
    limit: perMinute(30),
    access: allow.public('the refresh cookie is the credential; the CSRF token is checked with it'),
    schema: { response: { 200: loginResult, 401: refusal } },
    handler: async (request, { account }) => await account.refresh(request)
  })
  route({
    method: 'POST',
    url: '/api/auth/logout',
    group: 'Profile',
    operationId: 'Logout',
    summary: 'Logout',
    access: allow.session({ project: 'none', whileEnrolling: true }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'logout', resource: 'user' },
    handler: async ({ caller }, { account }) => await account.logOut(caller)
  })
}
