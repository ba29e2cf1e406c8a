SELECT
  "t2"."item",
  COALESCE("t5"."score", 0) AS "score"
FROM (
  SELECT
    CAST("item" AS VARCHAR) AS "item"
  FROM (VALUES
    ('tea'),
    ('it''s \ 😀'),
    ('rum ')) AS listed("item")
) AS "t2"
LEFT OUTER JOIN (
  SELECT
    "t3"."item",
    COUNT(DISTINCT "t3"."who") AS "score"
  FROM (
    SELECT
      TO_UTF8("t1"."customer") AS "who",
      TO_UTF8("t1"."product") AS "item"
    FROM "mart"."sales" AS "t1"
  ) AS "t3"
  GROUP BY
    1
) AS "t5"
  ON TO_UTF8("t2"."item") = "t5"."item"
